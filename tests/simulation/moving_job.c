/* SPDX-License-Identifier: BSD-3-Clause */
#include "moving_job.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "core/rendezvous/rendezvous_key.h"

/* More than these come of nodes that answer each other for ever. */
#define EVENTS_OF_A_SECOND_MAXIMUM 200000
/* A worker may take so long to end when it is told to. */
#define FENCE_SLACK_SECONDS 3.5

void moving_complain(struct moving_job *job, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    if (job->complaint[0] == '\0') {
        int length = snprintf(job->complaint, sizeof job->complaint,
            "at %.4f: ", duration_seconds((struct duration){job->now.nanoseconds}));
        (void)vsnprintf(
            job->complaint + length, sizeof job->complaint - (size_t)length, format, arguments);
    }
    va_end(arguments);
}

void moving_note(
    const struct moving_job *job, const struct moving_node *node, const char *format, ...) {
    char words[8192];
    va_list arguments;
    if (!job->is_told) {
        return;
    }
    va_start(arguments, format);
    (void)vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    print_message("%10.4f %s %s\n", duration_seconds((struct duration){job->now.nanoseconds}),
        node == NULL ? "" : node->name, words);
}

/* Chance and time. */

struct instant moving_later(const struct moving_job *job, double seconds) {
    return instant_after(job->now, duration_from_seconds(seconds));
}

double moving_between(struct moving_job *job, double low, double high) {
    return low + random_fraction(&job->random) * (high - low);
}

bool moving_chance(struct moving_job *job, unsigned percent) {
    return random_below(&job->random, 100) < percent;
}

struct moving_event *moving_add(struct moving_job *job, struct instant at,
    struct moving_node *process_or_null,
    void (*happen)(struct moving_job *job, struct moving_event *event)) {
    job->events = memory_reserve(
        job->events, &job->event_capacity, job->event_count + 1, sizeof *job->events);
    struct moving_event *event = &job->events[job->event_count++];
    *event = (struct moving_event){.at = at,
        .order = job->order++,
        .happen = happen,
        .node = process_or_null == NULL ? MOVING_NOBODY : process_or_null->index,
        .life = process_or_null == NULL ? 0 : process_or_null->life};
    return event;
}

static bool waits(const struct moving_job *job, const struct moving_event *event) {
    return event->node != MOVING_NOBODY && job->nodes[event->node].is_stopped &&
           job->nodes[event->node].life == event->life;
}

static size_t first_event(const struct moving_job *job) {
    size_t first = SIZE_MAX;
    for (size_t i = 0; i < job->event_count; i++) {
        const struct moving_event *event = &job->events[i];
        const struct moving_event *best = first == SIZE_MAX ? NULL : &job->events[first];
        bool is_first =
            best == NULL || instant_is_before(event->at, best->at) ||
            (event->at.nanoseconds == best->at.nanoseconds && event->order < best->order);
        if (is_first && !waits(job, event)) {
            first = i;
        }
    }
    return first;
}

/* Rules. */

/* A node that hears of nobody ends its workers. */
static void check_fences(struct moving_job *job) {
    for (int i = 0; i < job->node_count; i++) {
        const struct moving_node *node = &job->nodes[i];
        bool is_alone =
            node->is_alive && !node->is_stopped && node->is_running && !node->is_connected;
        if (is_alone && duration_seconds(instant_until(node->heard_at, job->now)) >
                            MOVING_FENCE_SECONDS + FENCE_SLACK_SECONDS) {
            moving_complain(job, "node %d runs on, and hears of nobody", i);
        }
    }
}

/* Nobody waits for a key that nobody writes: what the host tells a node lies under the name that it
 * has now. */
static void check_awaited(struct moving_job *job, const struct moving_node *node) {
    const struct moving_lane *lane = &node->lanes[RENDEZVOUS_LANE_ASKER];
    struct text key = {0};
    if (!lane->order.is_wanted) {
        return;
    }
    rendezvous_key_write_standing(
        MOVING_RUN_ID, rendezvous_machine_identity(node_machine_rendezvous(node->machine)), &key);
    if (!text_equals(text_string(&key), text_string(&lane->awaited))) {
        moving_complain(job, "node %d waits for %s, and is told at %s", node->index,
            text_string(&lane->awaited), text_string(&key));
    }
    text_clear(&key);
}

static struct moving_world *world_of(struct moving_job *job, const struct node_placement *told) {
    for (size_t i = 0; i < job->world_count; i++) {
        if (job->worlds[i].round == told->round) {
            return &job->worlds[i];
        }
    }
    job->worlds = memory_reserve(
        job->worlds, &job->world_capacity, job->world_count + 1, sizeof *job->worlds);
    job->worlds[job->world_count] = (struct moving_world){
        told->round, told->master_port, told->attempt, told->ranks.world_size, job->now};
    return &job->worlds[job->world_count++];
}

/* Whether an entry has this node at its rank in a world of this size; all entries of a round have.
 */
static bool is_committed(const struct moving_job *job, const struct moving_node *node,
    const struct node_placement *told) {
    const struct node_identity *me =
        rendezvous_machine_identity(node_machine_rendezvous(node->machine));
    bool is_there = false;
    for (size_t i = 0; i < job->reg.count; i++) {
        const struct rendezvous_state *record = &job->reg.entries[i].record;
        if (record->round != told->round || !record->is_complete) {
            continue;
        }
        const struct rendezvous_node *self = rendezvous_state_find(record, me);
        if (self == NULL || !self->is_participant || self->rank != told->group_rank ||
            rendezvous_state_participants(record) != (size_t)told->group_world_size ||
            record->restarts != told->attempt) {
            return false;
        }
        is_there = true;
    }
    return is_there;
}

void moving_check_start(struct moving_job *job, struct moving_node *node) {
    const struct node_placement *told = &node_machine_knowledge(node->machine)->placement;
    const struct moving_world *world = world_of(job, told);
    moving_note(job, node, "starts its worker in round %lld", (long long)told->round);
    if (node->worker != 0) {
        moving_complain(job, "node %d starts a worker beside the one before", node->index);
    }
    if (instant_is_before(world->begun_at, node->worker_gone_at)) {
        moving_complain(job, "the worker that node %d had before ran beside those of round %lld",
            node->index, (long long)told->round);
    }
    if (!is_committed(job, node, told)) {
        moving_complain(job,
            "node %d starts its worker as rank %d of %d in round %lld, which is no such entry",
            node->index, told->group_rank, told->group_world_size, (long long)told->round);
    }
    if (world->master_port != told->master_port || world->restarts != told->attempt ||
        world->world_size != told->ranks.world_size ||
        told->ranks.world_size != told->group_world_size ||
        told->ranks.base_rank != told->group_rank) {
        moving_complain(job, "two worlds in round %lld: of node %d and of others",
            (long long)told->round, node->index);
    }
    if (node->round == told->round) {
        moving_complain(
            job, "node %d is told of round %lld twice", node->index, (long long)told->round);
    }
    node->round = told->round;
    job->starts++;
}

int moving_count_alive(const struct moving_job *job) {
    int count = 0;
    for (int i = 0; i < job->node_count; i++) {
        count += job->nodes[i].is_alive ? 1 : 0;
    }
    return count;
}

bool moving_is_whole(struct moving_job *job) {
    const struct virtual_entry *last = virtual_register_last_world(&job->reg);
    for (int i = 0; last != NULL && i < job->node_count; i++) {
        const struct moving_node *node = &job->nodes[i];
        if (node->is_alive && (!node->is_running || node->round != last->record.round)) {
            return false;
        }
    }
    return last != NULL &&
           rendezvous_state_participants(&last->record) == (size_t)moving_count_alive(job);
}

int moving_host(const struct moving_job *job) {
    const struct virtual_entry *last = virtual_register_last(&job->reg);
    for (int i = 0; i < job->node_count && last != NULL; i++) {
        const struct moving_node *node = &job->nodes[i];
        if (node->is_alive && node->store != NULL &&
            node->life == (int64_t)last->entry.host.process.low) {
            return i;
        }
    }
    return MOVING_NOBODY;
}

/* Playing. */

static bool play_one(struct moving_job *job, struct instant end) {
    size_t first = first_event(job);
    if (first == SIZE_MAX || instant_is_before(end, job->events[first].at)) {
        return false;
    }
    struct moving_event event = job->events[first];
    job->events[first] = job->events[--job->event_count];
    if (instant_is_before(job->now, event.at)) {
        job->now = event.at;
    }
    struct moving_node *node = event.node == MOVING_NOBODY ? NULL : &job->nodes[event.node];
    if (node == NULL || (node->is_alive && node->life == event.life)) {
        event.happen(job, &event);
        if (node != NULL && node->is_alive) {
            moving_node_run(job, node);
        }
        if (node != NULL && node->is_alive) {
            check_awaited(job, node);
        }
    }
    bytes_clear(&event.bytes);
    check_fences(job);
    if (job->reg.complaint[0] != '\0') {
        moving_complain(job, "%s", job->reg.complaint);
    }
    return job->complaint[0] == '\0';
}

void moving_play(struct moving_job *job, double seconds) {
    struct instant end = moving_later(job, seconds);
    uint64_t most = (uint64_t)(seconds + 1) * EVENTS_OF_A_SECOND_MAXIMUM;
    while (job->complaint[0] == '\0' && play_one(job, end)) {
        if (most-- == 0) {
            moving_complain(job, "this takes for ever");
        }
    }
    job->now = end;
}

/* What happens to nodes. */

/* Its machines are freed later: it may be in the midst of a step of theirs. */
static void end_process(struct moving_job *job, struct moving_node *node) {
    if (!node->is_alive) {
        return;
    }
    moving_store_end(job, node);
    moving_lanes_drop(job, node, true);
    node->is_alive = false;
    node->is_stopped = false;
    node->is_running = false;
    node->is_connected = false;
    node->worker = 0;
}

static void forget_process(struct moving_job *job, struct moving_node *node) {
    moving_node_forget(job, node);
    node_machine_free(node->machine);
    rendezvous_record_store_free(node->record);
    node->machine = NULL;
    node->record = NULL;
}

void moving_start(struct moving_job *job, int index) {
    struct moving_node *node = &job->nodes[index];
    if (node->is_alive) {
        return;
    }
    forget_process(job, node);
    struct moving_node begun = {.job = job, .index = index, .life = ++job->lives};
    begun.delegates = job->delegation == MOVING_ALL_DELEGATE ||
                      (job->delegation == MOVING_SOME_DELEGATE && moving_chance(job, 50));
    for (int part = 0; part < NODE_PART_COUNT; part++) {
        begun.timer_tickets[part] = node->timer_tickets[part];
    }
    *node = begun;
    (void)snprintf(node->name, sizeof node->name, "n%c", 'a' + index);
    node->is_alive = true;
    node->round = node->begun_round = MOVING_NOBODY;
    node->heard_at = job->now;
    node_identity_init(&node->identity, node->name, 1,
        node_identity_muster_local_id((uint32_t)random_next(&job->random)));
    node->identity.process = (struct node_process){1, (uint64_t)node->life};
    moving_note(job, node, "comes");
    moving_node_begin(job, node);
    moving_node_run(job, node);
}

void moving_exit(struct moving_job *job, struct moving_node *node) {
    bool is_well = node->outcome == AGENT_OUTCOME_SUCCEEDED || job->may_be_over ||
                   (node->is_signalled && node->outcome == AGENT_OUTCOME_SIGNALLED);
    moving_note(job, node, "exits with outcome %d", (int)node->outcome);
    if (!is_well) {
        const char *trouble = node_machine_knowledge(node->machine)->trouble;
        moving_complain(job, "node %d gives up: %s", node->index, trouble == NULL ? "" : trouble);
    }
    if (node->worker != 0) {
        moving_complain(job, "node %d ends, and its worker runs", node->index);
    }
    end_process(job, node);
}

void moving_kill(struct moving_job *job, int index) {
    moving_note(job, &job->nodes[index], "is killed");
    end_process(job, &job->nodes[index]);
}

static void part_from_all(struct moving_job *job, int node) {
    for (int i = 0; i < job->node_count; i++) {
        moving_part(job, node, i);
    }
}

void moving_power_off(struct moving_job *job, int index) {
    struct moving_node *node = &job->nodes[index];
    moving_note(job, node, "goes off");
    node->is_off = node->is_alive;
    part_from_all(job, index);
    end_process(job, node);
}

static void goes_on(struct moving_job *job, struct moving_event *event) {
    struct moving_node *node = &job->nodes[event->number];
    if (node->is_alive && node->life == (int64_t)event->ticket && node->is_stopped) {
        moving_note(job, node, "goes on");
        node->is_stopped = false;
        node->heard_at = job->now;
        moving_node_run(job, node);
    }
}

/* Those who are connected to it hear nothing of it. */
void moving_stop(struct moving_job *job, int index, double seconds) {
    struct moving_node *node = &job->nodes[index];
    if (!node->is_alive || node->is_stopped) {
        return;
    }
    moving_note(job, node, "is stopped");
    node->is_stopped = true;
    if (node->store != NULL) {
        part_from_all(job, index);
    }
    struct moving_event *end = moving_add(job, moving_later(job, seconds), NULL, goes_on);
    end->number = index;
    end->ticket = (uint64_t)node->life;
}

void moving_signal(struct moving_job *job, int index) {
    struct moving_node *node = &job->nodes[index];
    if (node->is_alive && !node->is_stopped && !node->is_signalled) {
        moving_note(job, node, "receives SIGTERM");
        node->is_signalled = true;
        moving_tell_agent(job, node,
            (struct agent_event){.kind = AGENT_EVENT_SIGNAL_RECEIVED, .signal = MOVING_TERMINATE});
        moving_node_run(job, node);
    }
}

void moving_fail_worker(struct moving_job *job, int index) {
    struct moving_node *node = &job->nodes[index];
    if (node->is_alive && node->is_running && !node->is_stopped) {
        moving_note(job, node, "its worker fails");
        moving_worker_ends(job, node, (struct process_exit){.value = 1});
        moving_node_run(job, node);
    }
}

void moving_finish_worker(struct moving_job *job, int index) {
    struct moving_node *node = &job->nodes[index];
    if (node->is_alive && node->is_running) {
        moving_note(job, node, "its worker is done");
        moving_worker_ends(job, node, (struct process_exit){0});
        moving_node_run(job, node);
    }
}

void moving_finish_workers(struct moving_job *job) {
    job->is_finishing = true;
    for (int i = 0; i < job->node_count; i++) {
        moving_finish_worker(job, i);
    }
}

void moving_cut(struct moving_job *job, int index) {
    moving_note(job, &job->nodes[index], "is cut off");
    for (int i = 0; i < job->node_count; i++) {
        job->is_cut[index][i] = i != index;
    }
    part_from_all(job, index);
}

void moving_heal(struct moving_job *job) {
    moving_note(job, NULL, "all heals");
    memset(job->is_cut, 0, sizeof job->is_cut);
    job->is_register_down = false;
}

void moving_job_init(
    struct moving_job *job, uint64_t seed, int node_count, enum moving_delegation delegation) {
    *job = (struct moving_job){.seed = seed,
        .node_count = node_count,
        .delegation = delegation,
        .minimum = 1,
        .now = {1000000000}};
    random_init(&job->random, seed);
    random_init(&job->random, random_next(&job->random));
}

void moving_job_clear(struct moving_job *job) {
    for (int i = 0; i < job->node_count; i++) {
        end_process(job, &job->nodes[i]);
        forget_process(job, &job->nodes[i]);
    }
    for (size_t i = 0; i < job->event_count; i++) {
        bytes_clear(&job->events[i].bytes);
        rendezvous_state_clear(&job->events[i].entry.record);
    }
    free(job->events);
    free(job->worlds);
    moving_stores_clear(job);
    virtual_register_clear(&job->reg);
}
