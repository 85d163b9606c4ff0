/* SPDX-License-Identifier: BSD-3-Clause */
#include "virtual_parts.h"

#include "unit.h"

#include "base/memory.h"
#include "core/agent_transcript.h"

#define SHUTDOWN_TIMEOUT_MILLISECONDS 30000
#define LONGEST_RUN_MILLISECONDS 1000000
#define LONGEST_JOB 5000
#define HAPPENINGS_MAXIMUM 200000
#define TERMINATE 15
#define KILL 9

struct instant virtual_instant(int64_t milliseconds) {
    return (struct instant){.nanoseconds = milliseconds * 1000000};
}

bool virtual_is_likely(struct virtual_cluster *cluster, int percent) {
    return (int)random_below(&cluster->random, 100) < percent;
}

int64_t virtual_delay(struct virtual_cluster *cluster, int64_t longest) {
    return (int64_t)random_below(&cluster->random, (uint64_t)longest + 1);
}

struct virtual_happening *virtual_schedule(struct virtual_cluster *cluster,
    struct virtual_node *node, int64_t time,
    void (*happen)(struct virtual_cluster *, struct virtual_node *, struct virtual_happening *)) {
    struct virtual_happening *happening = memory_allocate(sizeof *happening);
    happening->time = time;
    happening->happen = happen;
    happening->node = node;
    struct virtual_happening **place = &cluster->happenings;
    while (*place != NULL && (*place)->time <= time) {
        place = &(*place)->next;
    }
    happening->next = *place;
    *place = happening;
    return happening;
}

static void free_happening(struct virtual_happening *happening) {
    static_answer_clear(&happening->answer);
    free(happening);
}

/* Agents. */

static void perform(
    struct virtual_cluster *cluster, struct virtual_node *node, const struct agent_effect *effect);

static void note(struct virtual_cluster *cluster, const struct virtual_node *node,
    const struct agent_event *event, const struct agent_effects *effects) {
    if (node->rank != 0) {
        return;
    }
    agent_event_describe(event, &cluster->transcript);
    for (size_t i = 0; i < effects->count; i++) {
        text_append(&cluster->transcript, i == 0 ? " -> " : "; ");
        agent_effect_describe(&effects->items[i], &cluster->transcript);
    }
    text_append(&cluster->transcript, "\n");
}

static void tell_agent(
    struct virtual_cluster *cluster, struct virtual_node *node, struct agent_event event) {
    struct agent_effects effects;
    event.now = virtual_instant(cluster->now);
    agent_machine_step(&node->machine, &event, &effects);
    note(cluster, node, &event, &effects);
    if (node->is_finished) {
        assert_int_equal(effects.count, 0); /* nothing comes after FINISH */
    }
    for (size_t i = 0; i < effects.count; i++) {
        perform(cluster, node, &effects.items[i]);
    }
}

static void agent_event_happens(struct virtual_cluster *cluster, struct virtual_node *node,
    struct virtual_happening *happening) {
    tell_agent(cluster, node, happening->event);
}

void virtual_tell_agent(
    struct virtual_cluster *cluster, struct virtual_node *node, struct agent_event event) {
    virtual_schedule(cluster, node, cluster->now, agent_event_happens)->event = event;
}

/* Processes. */

bool virtual_node_has_processes(const struct virtual_node *node) {
    for (int rank = 0; rank < VIRTUAL_MAXIMUM_WORKERS; rank++) {
        if (node->workers[rank].is_alive || node->workers[rank].has_orphan) {
            return true;
        }
    }
    return false;
}

static void tell_if_all_gone(struct virtual_cluster *cluster, struct virtual_node *node) {
    if (node->is_start_over && !node->has_told_gone && !virtual_node_has_processes(node)) {
        node->has_told_gone = true;
        virtual_tell_agent(cluster, node, (struct agent_event){.kind = AGENT_EVENT_ALL_GONE});
    }
}

static void end_worker(struct virtual_cluster *cluster, struct virtual_node *node, int rank,
    struct process_exit exit) {
    struct virtual_worker *worker = &node->workers[rank];
    worker->is_alive = false;
    worker->life = 0;
    if (exit.is_signal || exit.value != 0) {
        cluster->has_failed_somewhere = true;
    }
    virtual_tell_agent(cluster, node,
        (struct agent_event){.kind = AGENT_EVENT_WORKER_EXITED,
            .worker_exited = {.local_rank = rank,
                .exit = exit,
                .observed = {.nanoseconds = cluster->now * 1000000}}});
}

static void worker_ends(struct virtual_cluster *cluster, struct virtual_node *node,
    struct virtual_happening *happening) {
    struct virtual_worker *worker = &node->workers[happening->rank];
    if (worker->life != happening->life) {
        return;
    }
    worker->has_orphan = virtual_is_likely(cluster, cluster->settings.weather.leaves_orphan);
    int code = virtual_is_likely(cluster, cluster->settings.weather.worker_fails) ? 1 : 0;
    end_worker(cluster, node, happening->rank, (struct process_exit){.value = code});
    tell_if_all_gone(cluster, node);
}

static void session_ends(struct virtual_cluster *cluster, struct virtual_node *node,
    struct virtual_happening *happening) {
    struct virtual_worker *worker = &node->workers[happening->rank];
    if (worker->is_alive && worker->life == happening->life) {
        end_worker(cluster, node, happening->rank,
            (struct process_exit){.is_signal = true, .value = happening->event.signal});
    }
    worker->has_orphan = false;
    tell_if_all_gone(cluster, node);
}

static void signal_sessions(
    struct virtual_cluster *cluster, struct virtual_node *node, int signal) {
    node->is_start_over = true;
    for (int rank = 0; rank < cluster->settings.worker_count; rank++) {
        struct virtual_worker *worker = &node->workers[rank];
        bool is_deaf = worker->is_stuck || (worker->is_stubborn && signal != KILL);
        if ((worker->is_alive || worker->has_orphan) && !is_deaf) {
            struct virtual_happening *happening = virtual_schedule(cluster, node,
                cluster->now + virtual_delay(cluster, VIRTUAL_LONGEST_DELAY), session_ends);
            happening->rank = rank;
            happening->life = worker->life;
            happening->event.signal = signal;
        }
    }
    tell_if_all_gone(cluster, node);
}

static void worker_hangs(struct virtual_cluster *cluster, struct virtual_node *node,
    struct virtual_happening *happening) {
    struct virtual_worker *worker = &node->workers[happening->rank];
    if (worker->life != happening->life) {
        return;
    }
    worker->has_hung = true;
    cluster->has_failed_somewhere = true;
    virtual_tell_agent(cluster, node,
        (struct agent_event){.kind = AGENT_EVENT_WORKER_STUCK,
            .worker_stuck = {.local_rank = happening->rank,
                .stuck = duration_from_seconds(5),
                .observed = {.nanoseconds = cluster->now * 1000000}}});
}

static void schedule_worker(struct virtual_cluster *cluster, struct virtual_node *node, int rank,
    void (*happen)(struct virtual_cluster *, struct virtual_node *, struct virtual_happening *)) {
    struct virtual_happening *happening =
        virtual_schedule(cluster, node, cluster->now + virtual_delay(cluster, LONGEST_JOB), happen);
    happening->rank = rank;
    happening->life = node->workers[rank].life;
}

static void start_worker(struct virtual_cluster *cluster, struct virtual_node *node, int rank) {
    const struct virtual_weather *weather = &cluster->settings.weather;
    node->workers[rank] = (struct virtual_worker){
        .is_alive = true,
        .is_stubborn = virtual_is_likely(cluster, weather->worker_is_stubborn),
        .is_stuck = virtual_is_likely(cluster, weather->worker_is_stuck),
        .life = ++cluster->lives,
    };
    schedule_worker(cluster, node, rank, worker_ends);
    if (weather->worker_hangs > 0 && virtual_is_likely(cluster, weather->worker_hangs)) {
        schedule_worker(cluster, node, rank, worker_hangs);
    }
}

/* Nothing of an earlier attempt may be left anywhere, and nodes may not be in different attempts.
 */
static void check_start(
    struct virtual_cluster *cluster, const struct virtual_node *node, int attempt) {
    for (int i = 0; i < cluster->settings.node_count; i++) {
        const struct virtual_node *other = &cluster->nodes[i];
        assert_false(virtual_node_has_processes(other) && other->attempt < attempt);
        assert_false(other->starts > 0 && other->attempt > attempt);
    }
    assert_true(attempt <= cluster->settings.max_restarts);
    assert_int_equal(attempt, node->starts);
    if (cluster->settings.node_count > 1) {
        assert_int_equal(cluster->renewals, attempt);
    }
}

static void start_workers(struct virtual_cluster *cluster, struct virtual_node *node, int attempt) {
    check_start(cluster, node, attempt);
    node->attempt = attempt;
    node->starts++;
    node->is_start_over = false;
    node->has_told_gone = false;
    node->stop_asked = -1;
    int count = cluster->settings.worker_count;
    if (virtual_is_likely(cluster, cluster->settings.weather.start_fails)) {
        count = (int)random_below(&cluster->random, (uint64_t)count);
    }
    for (int rank = 0; rank < count; rank++) {
        start_worker(cluster, node, rank);
    }
    if (count == cluster->settings.worker_count) {
        node->is_start_over = true;
        virtual_tell_agent(
            cluster, node, (struct agent_event){.kind = AGENT_EVENT_WORKERS_STARTED});
        return;
    }
    cluster->has_failed_somewhere = true;
    virtual_tell_agent(cluster, node,
        (struct agent_event){.kind = AGENT_EVENT_START_FAILED,
            .start_failed = {.local_rank = count, .message = "exec failed"}});
}

/* What agents want. */

static void timer_fires(struct virtual_cluster *cluster, struct virtual_node *node,
    struct virtual_happening *happening) {
    if (node->timer_life == happening->life) {
        tell_agent(cluster, node, (struct agent_event){.kind = AGENT_EVENT_TIMER_FIRED});
    }
}

static void arm_timer(
    struct virtual_cluster *cluster, struct virtual_node *node, struct instant deadline) {
    struct virtual_happening *happening =
        virtual_schedule(cluster, node, deadline.nanoseconds / 1000000, timer_fires);
    happening->life = node->timer_life = ++cluster->lives;
}

static void ask_rendezvous(
    struct virtual_cluster *cluster, struct virtual_node *node, enum static_event_kind kind) {
    virtual_tell_rendezvous(cluster, node, (struct static_event){.kind = kind});
}

static void join(
    struct virtual_cluster *cluster, struct virtual_node *node, int64_t ticket, int attempt) {
    assert_false(virtual_node_has_processes(node));
    if (cluster->settings.node_count > 1) {
        virtual_tell_rendezvous(cluster, node,
            (struct static_event){.kind = STATIC_EVENT_JOIN_ASKED, .join = {ticket, attempt}});
        return;
    }
    virtual_tell_agent(cluster, node,
        (struct agent_event){.kind = AGENT_EVENT_JOINED,
            .joined = {.ticket = ticket, .restarts = attempt, .node_count = 1}});
}

/* SIGKILL comes exactly the shutdown timeout after the first stop signal, unless a user cannot
 * wait. */
static void check_kill(const struct virtual_cluster *cluster, const struct virtual_node *node) {
    assert_true(node->stop_asked >= 0);
    if (node->user_signals < 2) {
        assert_true(cluster->now - node->stop_asked == SHUTDOWN_TIMEOUT_MILLISECONDS);
    } else {
        assert_true(cluster->now - node->stop_asked <= SHUTDOWN_TIMEOUT_MILLISECONDS);
    }
}

static void finish(struct virtual_cluster *cluster, struct virtual_node *node,
    const struct agent_outcome *outcome) {
    assert_true(outcome->has_abandoned_processes || !virtual_node_has_processes(node));
    node->is_finished = true;
    node->outcome = *outcome;
    node->finished_at = cluster->now;
    if (node->rank == 0 && cluster->settings.node_count > 1) {
        /* What is on its way still arrives; then the store is gone. */
        for (int i = 1; i < cluster->settings.node_count; i++) {
            struct virtual_node *other = &cluster->nodes[i];
            other->connections[0]->is_lost = true;
            other->connections[1]->is_lost = true;
            virtual_tell_rendezvous_later(
                cluster, other, STATIC_EVENT_CONNECTION_LOST, 2 * VIRTUAL_LONGEST_DELAY);
        }
    }
}

static void perform(
    struct virtual_cluster *cluster, struct virtual_node *node, const struct agent_effect *effect) {
    switch (effect->kind) {
    case AGENT_EFFECT_JOIN:
        join(cluster, node, effect->join.ticket, effect->join.attempt);
        break;
    case AGENT_EFFECT_START_WORKERS:
        start_workers(cluster, node, effect->attempt);
        break;
    case AGENT_EFFECT_SIGNAL_WORKERS:
        node->stop_asked = node->stop_asked < 0 ? cluster->now : node->stop_asked;
        signal_sessions(cluster, node, effect->signal);
        break;
    case AGENT_EFFECT_LOOK_AT_WORKERS:
        break; /* no virtual agent looks */
    case AGENT_EFFECT_KILL_WORKERS:
        check_kill(cluster, node);
        signal_sessions(cluster, node, KILL);
        break;
    case AGENT_EFFECT_ARM_TIMER:
        arm_timer(cluster, node, effect->deadline);
        break;
    case AGENT_EFFECT_DISARM_TIMER:
        node->timer_life = ++cluster->lives;
        break;
    case AGENT_EFFECT_ENTER_BARRIER:
        ask_rendezvous(cluster, node, STATIC_EVENT_BARRIER_ASKED);
        break;
    case AGENT_EFFECT_ANNOUNCE_RESTART:
        ask_rendezvous(cluster, node, STATIC_EVENT_RESTART_ASKED);
        break;
    case AGENT_EFFECT_ANNOUNCE_FAILURE:
    case AGENT_EFFECT_ANNOUNCE_LEAVE: /* a static job cannot go on without a node */
        if (cluster->failure_announced_at < 0 && node->rendezvous.is_coordinated) {
            cluster->failure_announced_at = cluster->now;
        }
        ask_rendezvous(cluster, node, STATIC_EVENT_FAILURE_ASKED);
        break;
    case AGENT_EFFECT_ANNOUNCE_SUCCESS: /* known from the exit barrier */
        break;
    case AGENT_EFFECT_FINISH:
        finish(cluster, node, &effect->outcome);
        break;
    case AGENT_EFFECT_DOUBT_FAILURE: /* not with fixed nodes */
    case AGENT_EFFECT_COUNT:
        fail();
    }
}

/* Users. */

static void user_signals(struct virtual_cluster *cluster, struct virtual_node *node,
    struct virtual_happening *happening) {
    if (node->is_finished) {
        return;
    }
    node->user_signals++;
    cluster->has_failed_somewhere = true;
    tell_agent(cluster, node,
        (struct agent_event){
            .kind = AGENT_EVENT_SIGNAL_RECEIVED, .signal = happening->event.signal});
}

static void plan_user(struct virtual_cluster *cluster, struct virtual_node *node) {
    static const int signals[] = {TERMINATE, 2, 1};
    int64_t time = 0;
    for (int percent = cluster->settings.weather.user_signals; virtual_is_likely(cluster, percent);
         percent = 50) {
        time += virtual_delay(cluster, LONGEST_JOB * 2);
        virtual_schedule(cluster, node, time, user_signals)->event.signal =
            signals[random_below(&cluster->random, 3)];
    }
}

/* The whole. */

static void add_node(struct virtual_cluster *cluster, int rank) {
    struct virtual_node *node = &cluster->nodes[rank];
    struct agent_settings agent = {
        .worker_count = cluster->settings.worker_count,
        .max_restarts = cluster->settings.max_restarts,
        .shutdown_timeout = duration_from_milliseconds(SHUTDOWN_TIMEOUT_MILLISECONDS),
        .has_peers = cluster->settings.node_count > 1,
    };
    struct static_settings rendezvous = {
        .node_rank = rank,
        .node_count = cluster->settings.node_count,
        .role = "default",
        .local_world_size = cluster->settings.worker_count,
        .timeout = duration_from_seconds(900),
    };
    *node = (struct virtual_node){.rank = rank, .stop_asked = -1};
    agent_machine_init(&node->machine, &agent);
    static_rendezvous_init(&node->rendezvous, &rendezvous);
    for (int i = 0; i < 2; i++) {
        node->connections[i] = memory_allocate(sizeof *node->connections[i]);
        node->connections[i]->node = node;
        node->connections[i]->at_store.owner = node->connections[i];
    }
    plan_user(cluster, node);
    virtual_schedule(
        cluster, node, virtual_delay(cluster, VIRTUAL_LONGEST_DELAY), agent_event_happens)
        ->event.kind = AGENT_EVENT_START;
}

static bool is_over(const struct virtual_cluster *cluster) {
    for (int i = 0; i < cluster->settings.node_count; i++) {
        if (!cluster->nodes[i].is_finished) {
            return false;
        }
    }
    return true;
}

void virtual_cluster_play(
    struct virtual_cluster *cluster, const struct virtual_settings *settings) {
    *cluster = (struct virtual_cluster){.settings = *settings, .failure_announced_at = -1};
    random_init(&cluster->random, settings->seed);
    cluster->store = store_table_new(&STORE_LIMITS_DEFAULT);
    for (int i = 0; i < settings->node_count; i++) {
        add_node(cluster, i);
    }
    /* What is left to come after the end must not wake anybody. */
    for (int count = 0; cluster->happenings != NULL; count++) {
        struct virtual_happening *happening = cluster->happenings;
        cluster->happenings = happening->next;
        cluster->now = happening->time;
        assert_true(count < HAPPENINGS_MAXIMUM);
        assert_true(is_over(cluster) || cluster->now < LONGEST_RUN_MILLISECONDS);
        happening->happen(cluster, happening->node, happening);
        free_happening(happening);
    }
    assert_true(is_over(cluster));
}

void virtual_cluster_clear(struct virtual_cluster *cluster) {
    store_table_free(cluster->store);
    for (int i = 0; i < cluster->settings.node_count; i++) {
        struct virtual_node *node = &cluster->nodes[i];
        agent_machine_clear(&node->machine);
        static_rendezvous_clear(&node->rendezvous);
        free(node->connections[0]);
        free(node->connections[1]);
    }
    text_clear(&cluster->transcript);
}
