/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs of 2 to 20 nodes through several rounds, in a random order: what they agree on. The seed of
 * a failing job is printed. */
#include "unit.h"

#include <stdio.h>

#include "base/memory.h"
#include "virtual_round.h"

#define SEEDS 400
#define ROUNDS 6

static bool move(struct job *job, struct node *node) {
    return node->is_muster ? virtual_round_move(job, node) : virtual_torchrun_move(job, node);
}

/* Somebody, chosen at random, does something; false when nobody has anything to do. */
static bool move_anybody(struct job *job) {
    int start = (int)random_below(&job->random, (uint64_t)job->count);
    for (int i = 0; i < job->count; i++) {
        if (move(job, job->nodes[(start + i) % job->count])) {
            return true;
        }
    }
    return false;
}

/* Nobody has anything to do: the clock moves on to the first timer. */
static void fire_timer(struct job *job) {
    struct node *next = NULL;
    for (int i = 0; i < job->count; i++) {
        struct node *node = job->nodes[i];
        if (node->has_timer && (next == NULL || instant_is_before(node->timer, next->timer))) {
            next = node;
        }
    }
    assert_non_null(next);
    next->has_timer = false;
    job->now = next->timer;
    virtual_round_step(job, next, (struct round_event){.kind = ROUND_EVENT_TIMER_FIRED});
}

static bool is_everybody(const struct job *job, enum stage stage) {
    for (int i = 0; i < job->count; i++) {
        if (job->nodes[i]->stage != stage) {
            return false;
        }
    }
    return true;
}

static void wander(struct job *job, uint64_t moves) {
    for (uint64_t left = random_below(&job->random, moves); left > 0; left--) {
        move_anybody(job);
    }
}

static void run_until(struct job *job, enum stage stage) {
    while (!is_everybody(job, stage)) {
        if (!move_anybody(job)) {
            fire_timer(job);
        }
    }
}

static void add_node(struct job *job) {
    struct node *node = memory_allocate(sizeof *node);
    job->nodes[job->count++] = node;
    node->is_muster = virtual_round_chance(job, 60);
    node->workers = job->is_uniform ? 2 : 1 + (int)random_below(&job->random, 3);
    node->identity.pid = 1 + job->next_name;
    node->identity.local_id = node->is_muster ? node_identity_muster_local_id(7) : 0;
    snprintf(node->identity.address, sizeof node->identity.address, "n%02d%d",
        (int)random_below(&job->random, 50), job->next_name++);
    if (node->is_muster) {
        struct round_settings settings = {.role = "default",
            .local_world_size = node->workers,
            .is_uniform = job->is_uniform,
            .timeout = duration_from_seconds(600),
            .exit_barrier_timeout = duration_from_seconds(300)};
        node->exchange = round_exchange_new(&settings);
    }
}

static void remove_node(struct job *job, int index) {
    struct node *node = job->nodes[index];
    if (node->is_muster) {
        virtual_round_disconnect(job, node);
        round_exchange_free(node->exchange);
    }
    free(node);
    job->nodes[index] = job->nodes[--job->count];
}

static int compare_nodes(const void *left, const void *right) {
    const struct node *const *first = left;
    const struct node *const *second = right;
    return node_identity_compare(&(*first)->identity, &(*second)->identity);
}

static struct rendezvous_state *record_round(struct job *job) {
    rendezvous_state_clear(&job->state);
    job->state.round = job->round;
    job->state.is_complete = true;
    for (int i = 0; i < job->count; i++) {
        struct node *node = job->nodes[i];
        struct rendezvous_node *entry = rendezvous_state_obtain(&job->state, &node->identity);
        entry->is_participant = true;
        entry->rank = node->rank = i;
        node->asker.stored.owner = &node->asker;
        node->waiter.stored.owner = &node->waiter;
    }
    return &job->state;
}

static bool has_torchrun(const struct job *job) {
    for (int i = 0; i < job->count; i++) {
        if (!job->nodes[i]->is_muster) {
            return true;
        }
    }
    return false;
}

static void begin_round(struct job *job) {
    struct rendezvous_state *record = record_round(job);
    for (int i = 0; i < job->count; i++) {
        struct node *node = job->nodes[i];
        node->stage = STAGE_JOINING;
        node->line = 0;
        node->has_met_torchrun = node->has_met_torchrun || has_torchrun(job);
        if (node->is_muster) {
            virtual_round_step(job, node,
                (struct round_event){.kind = ROUND_EVENT_BEGIN,
                    .round = job->round,
                    .begin = {.group_rank = i,
                        .node_count = job->count,
                        .state = record,
                        .identity = &node->identity}});
        }
    }
}

static void end_round(struct job *job) {
    for (int i = 0; i < job->count; i++) {
        if (job->nodes[i]->is_muster) {
            virtual_round_step(
                job, job->nodes[i], (struct round_event){.kind = ROUND_EVENT_ABANDON});
            assert_null(job->nodes[i]->waiter.stored.wait);
        }
    }
    job->round++;
}

static bool are_same(const struct place *left, const struct place *right) {
    return left->port == right->port && strcmp(left->address, right->address) == 0;
}

static const struct node *find_owner(const struct job *job, const struct place *place) {
    for (int i = 0; i < job->count; i++) {
        if (strcmp(job->nodes[i]->identity.address, place->address) == 0) {
            return job->nodes[i];
        }
    }
    return NULL;
}

/* Alone among themselves, torchrun's nodes that come new wait for what nobody publishes. */
static bool is_deserted(const struct job *job) {
    bool is_deserted = false;
    for (int i = 0; i < job->count; i++) {
        if (job->nodes[i]->is_muster) {
            return false;
        }
        is_deserted = is_deserted || !job->nodes[i]->has_cache;
    }
    return is_deserted && job->nodes[0]->has_server;
}

/* Whether torchrun's caches leave one address that is alive: of those that have one, nobody's
 * differs, nobody makes a new one, and its owner takes part. */
static bool is_viable(const struct job *job) {
    const struct node *first = job->nodes[0];
    const struct place *known = NULL;
    if (!job->is_sharing || is_deserted(job)) {
        return !job->is_sharing;
    }
    for (int i = 0; i < job->count; i++) {
        const struct node *node = job->nodes[i];
        if (node->is_muster || !node->has_cache || (i == 0 && !node->has_server)) {
            continue;
        }
        if (known != NULL && !are_same(known, &node->cache)) {
            return false;
        }
        known = &node->cache;
    }
    return known == NULL ||
           (find_owner(job, known) != NULL &&
               (first->is_muster || (first->has_server && are_same(known, &first->cache))));
}

static void check_place(const struct job *job, const struct place *place) {
    const struct node *owner = find_owner(job, place);
    assert_non_null(owner);
    if (owner->is_muster) {
        assert_true(are_same(&owner->server, place));
        assert_int_equal(owner->server_round, job->round);
        assert_true(owner->is_fresh == !owner->has_met_torchrun);
    } else if (job->is_sharing) {
        assert_true(owner->has_server && are_same(&owner->cache, place));
    } else {
        assert_int_equal(owner->rank, 0);
    }
}

/* One world: one address, which is alive, and ranks that follow each other. */
static void check_world(const struct job *job) {
    int base = 0;
    for (int i = 0; i < job->count; i++) {
        const struct node *node = job->nodes[i];
        assert_true(are_same(&node->master, &job->nodes[0]->master));
        assert_int_equal(node->ranks.base_rank, base);
        assert_int_equal(node->ranks.world_size, job->nodes[0]->ranks.world_size);
        base += node->workers;
    }
    assert_int_equal(base, job->nodes[0]->ranks.world_size);
    check_place(job, &job->nodes[0]->master);
}

static void leave(struct job *job, struct node *node) {
    node->stage = STAGE_LEAVING;
    if (node->is_muster) {
        virtual_round_step(job, node, (struct round_event){.kind = ROUND_EVENT_BARRIER_ASKED});
    } else {
        virtual_torchrun_enter_barrier(job);
    }
}

/* One after the other, and nobody before the last one has come. */
static void leave_together(struct job *job) {
    for (int i = 0; i < job->count; i++) {
        wander(job, 20);
        for (int other = 0; other < job->count; other++) {
            assert_true(job->nodes[other]->stage != STAGE_LEFT);
        }
        leave(job, job->nodes[i]);
    }
    run_until(job, STAGE_LEFT);
}

static void change_membership(struct job *job) {
    for (int i = job->count - 1; i >= 0; i--) {
        if (job->count > 1 && virtual_round_chance(job, 20)) {
            remove_node(job, i);
        }
    }
    while (job->count < NODES_MAXIMUM && (job->count < 2 || virtual_round_chance(job, 40))) {
        add_node(job);
    }
    qsort(job->nodes, (size_t)job->count, sizeof *job->nodes, compare_nodes);
}

static void play_rounds(struct job *job) {
    for (int i = 0; i < ROUNDS; i++) {
        change_membership(job);
        if (!is_viable(job)) {
            return;
        }
        begin_round(job);
        if (!has_torchrun(job) && virtual_round_chance(job, 30)) {
            wander(job, 40);
        } else {
            run_until(job, STAGE_JOINED);
            check_world(job);
        }
        end_round(job);
    }
    begin_round(job);
    run_until(job, STAGE_JOINED);
    check_world(job);
    leave_together(job);
}

static void play(void **state, bool is_sharing, bool is_uniform) {
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct job job = {.is_sharing = is_sharing,
            .is_uniform = is_uniform,
            .next_port = 20000,
            .table = store_table_new(&STORE_LIMITS_DEFAULT)};
        *(uint64_t *)*state = seed;
        random_init(&job.random, seed);
        for (int i = (int)(seed % (NODES_MAXIMUM - 1)); i > 0; i--) {
            add_node(&job);
        }
        play_rounds(&job);
        while (job.count > 0) {
            remove_node(&job, 0);
        }
        store_table_free(job.table);
        store_effects_clear(&job.effects);
        rendezvous_state_clear(&job.state);
    }
}

static int remember_seed(void **state) {
    *state = calloc(1, sizeof(uint64_t));
    return *state == NULL ? -1 : 0;
}

static int print_seed(void **state) {
    print_message("last seed: %d\n", (int)*(uint64_t *)*state);
    free(*state);
    return 0;
}

#define SEEDED(test) TEST_WITH(test, remember_seed, print_seed)

SEEDED(nodes_agree_on_one_world_in_each_round) {
    play(state, true, false);
}

SEEDED(nodes_agree_when_torchrun_does_not_share_its_store) {
    play(state, false, false);
}

SEEDED(uniform_nodes_agree) {
    play(state, true, true);
}
