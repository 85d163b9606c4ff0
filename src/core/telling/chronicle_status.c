/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/telling/chronicle_status.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"

static void clear_recovery(struct chronicle_recovery *recovery) {
    free(recovery->what);
    free(recovery->node);
}

void chronicle_status_clear(struct chronicle_status *status) {
    for (size_t i = 0; i < status->known_nodes; i++) {
        free(status->nodes[i].name);
        free(status->nodes[i].version);
    }
    for (size_t i = 0; i < status->recovery_count; i++) {
        clear_recovery(&status->recoveries[i]);
    }
    free(status->nodes);
    free(status->recoveries);
    free(status->excluded.node);
    free(status->excluded.reason);
    free(status->kept.node);
    free(status->kept.reason);
    if (status->places != NULL) {
        table_free(status->places);
    }
    *status = (struct chronicle_status){0};
}

void chronicle_status_copy(
    const struct chronicle_status *status, struct chronicle_status *out_copy) {
    *out_copy = *status;
    out_copy->places = NULL;
    out_copy->node_capacity = out_copy->recovery_capacity = 0;
    out_copy->nodes = memory_reserve(
        NULL, &out_copy->node_capacity, status->known_nodes + 1, sizeof *out_copy->nodes);
    out_copy->recoveries = memory_reserve(NULL, &out_copy->recovery_capacity,
        status->recovery_count + 1, sizeof *out_copy->recoveries);
    out_copy->excluded.node = memory_duplicate_string(status->excluded.node);
    out_copy->excluded.reason = memory_duplicate_string(status->excluded.reason);
    out_copy->kept.node = memory_duplicate_string(status->kept.node);
    out_copy->kept.reason = memory_duplicate_string(status->kept.reason);
    for (size_t i = 0; i < status->known_nodes; i++) {
        out_copy->nodes[i] = status->nodes[i];
        out_copy->nodes[i].name = memory_duplicate_string(status->nodes[i].name);
        out_copy->nodes[i].version = memory_duplicate_string(status->nodes[i].version);
    }
    for (size_t i = 0; i < status->recovery_count; i++) {
        out_copy->recoveries[i] = status->recoveries[i];
        out_copy->recoveries[i].what = memory_duplicate_string(status->recoveries[i].what);
        out_copy->recoveries[i].node = memory_duplicate_string(status->recoveries[i].node);
    }
}

/* Nodes. */

static bool is_present(enum chronicle_node_state state) {
    return state != CHRONICLE_NODE_ENDED && state != CHRONICLE_NODE_GONE &&
           state != CHRONICLE_NODE_MISSED;
}

static bool runs(enum chronicle_node_state state) {
    return state == CHRONICLE_NODE_RUNNING || state == CHRONICLE_NODE_TRAINING;
}

static bool has_node_in(const struct chronicle_status *status, enum chronicle_node_state state) {
    return status->in_state[state] > 0;
}

static void set_state(
    struct chronicle_status *status, struct chronicle_node *node, enum chronicle_node_state state) {
    status->in_state[node->state]--;
    status->in_state[state]++;
    node->state = state;
}

/* The table's values are numbers from 1 on. */
static void note_place(struct chronicle_status *status, size_t index) {
    table_put(status->places, slice_from_string(status->nodes[index].name),
        (void *)(uintptr_t)(index + 1));
}

int chronicle_status_find(struct chronicle_status *status, const char *name) {
    if (status->places == NULL) {
        status->places = table_new(NULL);
        for (size_t i = 0; i < status->known_nodes; i++) {
            note_place(status, i);
        }
    }
    return (int)(uintptr_t)table_get(status->places, slice_from_string(name)) - 1;
}

/* NULL: there are too many. */
static struct chronicle_node *node_of(struct chronicle_status *status, const char *name) {
    int place = chronicle_status_find(status, name);
    if (place >= 0) {
        return &status->nodes[place];
    }
    if (status->known_nodes >= CHRONICLE_NODES_MAXIMUM) {
        return NULL;
    }
    status->nodes = memory_reserve(
        status->nodes, &status->node_capacity, status->known_nodes + 1, sizeof *status->nodes);
    struct chronicle_node *node = &status->nodes[status->known_nodes++];
    *node = (struct chronicle_node){.name = memory_duplicate_string(name),
        .rank = -1,
        .first_rank = -1,
        .workers = -1,
        .step = -1,
        .rate = -1,
        .spares_ready = -1,
        .spares = -1};
    status->in_state[node->state]++;
    note_place(status, status->known_nodes - 1);
    return node;
}

/* Time. */

static void add_time(struct chronicle_status *status, struct duration time) {
    struct chronicle_account *account = &status->account;
    account->states[status->state].nanoseconds += time.nanoseconds;
    if (status->state == JOB_RECOVERING && status->recovery_count > 0) {
        enum chronicle_cause cause = status->recoveries[status->recovery_count - 1].cause;
        account->recovering[cause].nanoseconds += time.nanoseconds;
    }
    if (status->state == JOB_RUNNING) {
        status->since_started.nanoseconds += time.nanoseconds;
    }
    if (status->state == JOB_RUNNING || status->state == JOB_TRAINING) {
        double seconds = duration_seconds(time);
        account->worker_seconds += seconds * status->worker_count;
        account->missing_worker_seconds +=
            seconds * (status->largest_worker_count - status->worker_count);
    }
}

void chronicle_status_advance(struct chronicle_status *status, struct wall_time now) {
    if (!status->has_begun) {
        status->has_begun = true;
        status->began = status->since = status->now = now;
    }
    if (now.nanoseconds > status->now.nanoseconds) {
        add_time(status, (struct duration){now.nanoseconds - status->now.nanoseconds});
        status->now = now;
    }
}

struct duration chronicle_status_wall(const struct chronicle_status *status) {
    return (struct duration){status->now.nanoseconds - status->began.nanoseconds -
                             status->account.states[JOB_ENDED].nanoseconds};
}

/* Recoveries. */

static struct chronicle_recovery *open_recovery(struct chronicle_status *status) {
    struct chronicle_recovery *last =
        status->recovery_count > 0 ? &status->recoveries[status->recovery_count - 1] : NULL;
    return last != NULL && !last->is_over && !last->is_given_up ? last : NULL;
}

static void reach(struct chronicle_status *status, enum recovery_moment moment,
    const struct chronicle_node *node) {
    struct chronicle_recovery *recovery = open_recovery(status);
    if (recovery == NULL) {
        return;
    }
    recovery->moments[moment] = status->now;
    recovery->last[moment] = node != NULL ? (int)(node - status->nodes) : -1;
    /* What was reached before is to be reached once more, where a failure interrupts. */
    for (int later = (int)moment + 1; later < RECOVERY_MOMENT_COUNT; later++) {
        recovery->moments[later] = (struct wall_time){0};
        recovery->last[later] = -1;
    }
}

static void know_culprit(struct chronicle_recovery *recovery, const struct chronicle_entry *entry) {
    free(recovery->what);
    if (entry->kind == CHRONICLE_WORKER_FAILED) {
        recovery->rank = (int)chronicle_entry_number(entry, CHRONICLE_RANK, -1);
        recovery->exit = (int)chronicle_entry_number(entry, CHRONICLE_EXIT,
            -chronicle_entry_number(entry, CHRONICLE_SIGNAL, -(int64_t)INT_MIN));
        recovery->what = memory_duplicate_string(chronicle_entry_text(entry, CHRONICLE_TEXT));
        recovery->node = memory_duplicate_string(entry->node);
    } else {
        recovery->what = memory_duplicate_string(chronicle_entry_text(entry, CHRONICLE_REASON));
        if (entry->kind == CHRONICLE_NODE_LOST) {
            recovery->node = memory_duplicate_string(entry->node);
        }
    }
}

/* Of entries of several nodes, dated by the host that heard of them, a consequence may seem to be
 * before its cause. */
static bool is_culprit_missing(
    const struct chronicle_recovery *recovery, enum chronicle_cause cause) {
    return recovery->cause == cause && recovery->node == NULL &&
           recovery->moments[RECOVERY_AGREED].nanoseconds == 0;
}

/* A failure in a recovery belongs to it: what had been started is to be started once more. */
static void begin_anew(struct chronicle_recovery *recovery) {
    for (int moment = RECOVERY_STARTED; moment < RECOVERY_MOMENT_COUNT; moment++) {
        recovery->moments[moment] = (struct wall_time){0};
        recovery->last[moment] = -1;
    }
}

static void begin_recovery(struct chronicle_status *status, enum chronicle_cause cause,
    const struct chronicle_node *node, const struct chronicle_entry *entry) {
    struct chronicle_recovery *open = open_recovery(status);
    if (open != NULL) {
        if (entry->kind != CHRONICLE_STOPPING && is_culprit_missing(open, cause)) {
            know_culprit(open, entry);
        }
        begin_anew(open);
        return;
    }
    if (status->recovery_count == CHRONICLE_RECOVERIES_MAXIMUM) {
        clear_recovery(&status->recoveries[0]);
        memmove(status->recoveries, status->recoveries + 1,
            --status->recovery_count * sizeof *status->recoveries);
        status->recoveries_before++;
    }
    status->recoveries = memory_reserve(status->recoveries, &status->recovery_capacity,
        status->recovery_count + 1, sizeof *status->recoveries);
    struct chronicle_recovery *recovery = &status->recoveries[status->recovery_count++];
    *recovery = (struct chronicle_recovery){
        .cause = cause, .round = status->round, .rank = -1, .exit = INT_MIN, .redone_steps = -1};
    know_culprit(recovery, entry);
    reach(status, RECOVERY_FAILED, NULL);
    reach(status, RECOVERY_NOTICED, entry->kind == CHRONICLE_NODE_LOST ? NULL : node);
}

/* Whether workers run that have not taken a step yet, though they are known to take steps. */
static bool awaits_steps(const struct chronicle_status *status) {
    bool has_trained = false;
    bool is_any_running = false;
    for (size_t i = 0; i < status->known_nodes; i++) {
        const struct chronicle_node *node = &status->nodes[i];
        has_trained = has_trained || node->has_trained;
        is_any_running = is_any_running || node->state == CHRONICLE_NODE_RUNNING;
        if (node->state == CHRONICLE_NODE_RUNNING && node->has_trained) {
            return true;
        }
    }
    return has_trained && is_any_running && !has_node_in(status, CHRONICLE_NODE_TRAINING);
}

static bool is_any_at_work(const struct chronicle_status *status) {
    return has_node_in(status, CHRONICLE_NODE_RUNNING) ||
           has_node_in(status, CHRONICLE_NODE_TRAINING);
}

/* All that go on run again; or nobody goes on. */
static void end_recovery(struct chronicle_status *status) {
    struct chronicle_recovery *recovery = open_recovery(status);
    if (recovery == NULL || has_node_in(status, CHRONICLE_NODE_STOPPING) ||
        has_node_in(status, CHRONICLE_NODE_JOINING) ||
        has_node_in(status, CHRONICLE_NODE_STARTING) || awaits_steps(status)) {
        return;
    }
    recovery->is_over = recovery->moments[RECOVERY_STARTED].nanoseconds != 0;
    /* Where nodes run, and none is to start, the failure is news of which the others hear next. */
    recovery->is_given_up = !recovery->is_over && !is_any_at_work(status);
}

struct duration chronicle_recovery_phase(
    const struct chronicle_recovery *recovery, enum recovery_moment until) {
    struct wall_time from = recovery->moments[RECOVERY_FAILED];
    for (int moment = RECOVERY_FAILED + 1; moment < (int)until; moment++) {
        if (recovery->moments[moment].nanoseconds > from.nanoseconds) {
            from = recovery->moments[moment];
        }
    }
    int64_t time = recovery->moments[until].nanoseconds - from.nanoseconds;
    return (struct duration){time > 0 ? time : 0};
}

/* Steps. */

/* Up to now the job has started, as is known by its first step. */
static void take_training(struct chronicle_status *status, struct chronicle_node *node,
    const struct chronicle_entry *entry) {
    if (!runs(node->state)) {
        return; /* it stops again already */
    }
    set_state(status, node, CHRONICLE_NODE_TRAINING);
    node->has_trained = true;
    status->source = progress_source_from_name(chronicle_entry_text(entry, CHRONICLE_SOURCE));
    if (open_recovery(status) == NULL) {
        status->account.states[JOB_RUNNING].nanoseconds -= status->since_started.nanoseconds;
        status->account.states[JOB_STARTING].nanoseconds += status->since_started.nanoseconds;
        status->since_started = (struct duration){0};
    }
    reach(status, RECOVERY_TRAINING, node);
}

/* Of the time from one told step to the next one that part in which lost steps were taken again. */
static void count_redone(struct chronicle_status *status, int64_t step, struct wall_time at) {
    int64_t before = status->step_of_world;
    int64_t time = at.nanoseconds - status->stepped.nanoseconds;
    if (before < 0 || step <= before || before >= status->lost_step || time <= 0) {
        return;
    }
    int64_t last = step < status->lost_step ? step : status->lost_step;
    double part = (double)(last - before) / (double)(step - before);
    int64_t room =
        status->account.states[JOB_TRAINING].nanoseconds - status->account.redone.nanoseconds;
    int64_t redone = (int64_t)((double)time * part);
    status->account.redone.nanoseconds += redone < room ? redone : room;
    status->lost_step = step < status->lost_step ? status->lost_step : -1;
}

static void take_first_step(struct chronicle_status *status, int64_t step) {
    struct chronicle_recovery *last =
        status->recovery_count > 0 ? &status->recoveries[status->recovery_count - 1] : NULL;
    if (last != NULL && last->redone_steps < 0 && status->lost_step >= 0) {
        last->redone_steps = status->lost_step >= step ? status->lost_step - step + 1 : 0;
    }
}

/* The numbers of an optimizer's steps say nothing of those before. */
static void take_progress(struct chronicle_status *status, struct chronicle_node *node,
    const struct chronicle_entry *entry) {
    int64_t step = chronicle_entry_number(entry, CHRONICLE_STEP, -1);
    status->source = progress_source_from_name(chronicle_entry_text(entry, CHRONICLE_SOURCE));
    node->step = step;
    node->rate = chronicle_entry_rate(entry, CHRONICLE_RATE, -1);
    if (!runs(node->state) || step < 0) {
        return;
    }
    status->account.knows_redone = status->source == PROGRESS_PROGRAM;
    if (status->source == PROGRESS_PROGRAM) {
        if (status->step_of_world < 0) {
            take_first_step(status, step);
        }
        count_redone(status, step, entry->time);
    }
    status->step = status->step_of_world = step;
    status->stepped = entry->time;
    if (node->rate >= 0) {
        status->rate = node->rate;
    }
}

/* Its steps from here on are those of another world. */
static void lose_steps(struct chronicle_status *status) {
    if (status->source == PROGRESS_PROGRAM && status->step_of_world > status->lost_step) {
        status->lost_step = status->step_of_world;
    }
    status->step_of_world = -1;
    status->since_started = (struct duration){0};
}

/* Entries. */

static void take_world(struct chronicle_status *status, const struct chronicle_entry *entry) {
    struct chronicle_recovery *recovery = open_recovery(status);
    status->has_round = entry->has_round;
    status->round = entry->round;
    status->node_count = (int)chronicle_entry_number(entry, CHRONICLE_NODES, 0);
    status->worker_count = (int)chronicle_entry_number(entry, CHRONICLE_WORKERS, 0);
    status->restarts = (int)chronicle_entry_number(entry, CHRONICLE_USED, 0);
    status->max_restarts = (int)chronicle_entry_number(entry, CHRONICLE_MAX, -1);
    if (status->worker_count > status->largest_worker_count) {
        status->largest_worker_count = status->worker_count;
    }
    if (recovery != NULL) {
        recovery->is_charged = chronicle_entry_number(entry, CHRONICLE_CHARGED, 0) != 0;
    }
}

static void take_joined(struct chronicle_status *status, struct chronicle_node *node,
    const struct chronicle_entry *entry) {
    const char *version = chronicle_entry_text(entry, CHRONICLE_VERSION);
    node->rank = (int)chronicle_entry_number(entry, CHRONICLE_RANK, -1);
    node->first_rank = (int)chronicle_entry_number(entry, CHRONICLE_FIRST_RANK, -1);
    node->workers = (int)chronicle_entry_number(entry, CHRONICLE_WORKERS, -1);
    free(node->version);
    node->version = memory_duplicate_string(version);
    set_state(status, node, CHRONICLE_NODE_STARTING);
}

static void take_waiting(struct chronicle_status *status, struct chronicle_node *node,
    const struct chronicle_entry *entry) {
    status->minimum_nodes = (int)chronicle_entry_number(entry, CHRONICLE_MIN, 0);
    status->maximum_nodes = (int)chronicle_entry_number(entry, CHRONICLE_MAX, 0);
    status->here = (int)chronicle_entry_number(entry, CHRONICLE_HERE, -1);
    if (node->state != CHRONICLE_NODE_JOINING) {
        set_state(status, node, CHRONICLE_NODE_WAITING);
    }
}

static void take_stopping(struct chronicle_status *status, struct chronicle_node *node,
    const struct chronicle_entry *entry) {
    enum chronicle_cause cause =
        chronicle_cause_from_name(chronicle_entry_text(entry, CHRONICLE_CAUSE));
    if (cause == CHRONICLE_CAUSE_NONE || cause == CHRONICLE_CAUSE_COUNT) {
        set_state(status, node, CHRONICLE_NODE_ENDING);
        return;
    }
    begin_recovery(status, cause, node, entry);
    set_state(status, node, CHRONICLE_NODE_STOPPING);
}

static void take_failed(struct chronicle_status *status, struct chronicle_node *node,
    const struct chronicle_entry *entry) {
    bool has_hung = chronicle_entry_number(entry, CHRONICLE_RANK, -1) == status->hung_rank;
    const struct chronicle_recovery *open = open_recovery(status);
    node->failed_first +=
        open == NULL || is_culprit_missing(open, CHRONICLE_CAUSE_WORKER_FAILED) ? 1 : 0;
    begin_recovery(
        status, has_hung ? CHRONICLE_CAUSE_HANG : CHRONICLE_CAUSE_WORKER_FAILED, node, entry);
}

static void take_excluded(struct chronicle_status *status, struct chronicle_node *node,
    const struct chronicle_entry *entry) {
    const char *result = chronicle_entry_text(entry, CHRONICLE_RESULT);
    bool stays = result != NULL && text_equals(result, CHRONICLE_RESULT_STAYS);
    struct chronicle_exclusion *last = stays ? &status->kept : &status->excluded;
    node->is_excluded = !stays;
    status->excluded_count += stays ? 0 : 1;
    free(last->node);
    free(last->reason);
    *last = (struct chronicle_exclusion){.node = memory_duplicate_string(entry->node),
        .reason = memory_duplicate_string(chronicle_entry_text(entry, CHRONICLE_REASON)),
        .at = entry->time};
}

static enum job_result result_named(const char *name) {
    int result = JOB_UNDECIDED + 1;
    while (name != NULL && result < JOB_RESULT_COUNT &&
           !text_equals(name, job_result_name((enum job_result)result))) {
        result++;
    }
    return name == NULL || result == JOB_RESULT_COUNT ? JOB_FAILED : (enum job_result)result;
}

/* The worst of all nodes' is the job's. */
static void take_ended(struct chronicle_status *status, struct chronicle_node *node,
    const struct chronicle_entry *entry) {
    enum job_result result = result_named(chronicle_entry_text(entry, CHRONICLE_RESULT));
    if (node->is_excluded && result == JOB_STOPPED) {
        set_state(status, node, CHRONICLE_NODE_GONE); /* the others go on */
        return;
    }
    if (node->state != CHRONICLE_NODE_GONE) {
        set_state(status, node, CHRONICLE_NODE_ENDED);
    }
    status->result = result > status->result ? result : status->result;
}

static void take_kind(struct chronicle_status *status, struct chronicle_node *node,
    const struct chronicle_entry *entry) {
    switch (entry->kind) {
    case CHRONICLE_WAITING:
        take_waiting(status, node, entry);
        break;
    case CHRONICLE_WORLD:
        take_world(status, entry);
        break;
    case CHRONICLE_JOINED:
        take_joined(status, node, entry);
        reach(status, RECOVERY_AGREED, node);
        break;
    case CHRONICLE_STARTED:
        lose_steps(status);
        set_state(status, node, CHRONICLE_NODE_RUNNING);
        status->hung_rank = -1;
        reach(status, RECOVERY_STARTED, node);
        break;
    case CHRONICLE_WORKER_FAILED:
        take_failed(status, node, entry);
        break;
    case CHRONICLE_STOPPING:
        take_stopping(status, node, entry);
        break;
    case CHRONICLE_STOPPED:
        if (node->state == CHRONICLE_NODE_STOPPING) {
            set_state(status, node, CHRONICLE_NODE_JOINING);
            reach(status, RECOVERY_STOPPED, node);
        }
        break;
    case CHRONICLE_NODE_LOST:
        set_state(status, node, CHRONICLE_NODE_MISSED);
        begin_recovery(status, CHRONICLE_CAUSE_NODE_LOST, node, entry);
        break;
    case CHRONICLE_NODE_LEFT:
        set_state(status, node, CHRONICLE_NODE_GONE);
        break;
    case CHRONICLE_SPARES:
        node->spares_ready = (int)chronicle_entry_number(entry, CHRONICLE_READY, -1);
        node->spares = (int)chronicle_entry_number(entry, CHRONICLE_OF, -1);
        break;
    case CHRONICLE_ENDED:
        take_ended(status, node, entry);
        break;
    case CHRONICLE_HANG:
        status->hung_rank = (int)chronicle_entry_number(entry, CHRONICLE_RANK, -1);
        break;
    case CHRONICLE_PROGRESS:
        take_progress(status, node, entry);
        break;
    case CHRONICLE_TRAINING:
        take_training(status, node, entry);
        break;
    case CHRONICLE_EXCLUDED:
        take_excluded(status, node, entry);
        break;
    case CHRONICLE_CHECKPOINT:
    case CHRONICLE_SLOW:
    case CHRONICLE_HOST:
    case CHRONICLE_RESTART: /* its world has said so */
    case CHRONICLE_KIND_COUNT:
        break;
    }
}

static enum job_state judge(struct chronicle_status *status) {
    bool is_any_present = false;
    for (size_t i = 0; i < status->known_nodes; i++) {
        is_any_present = is_any_present || is_present(status->nodes[i].state);
    }
    return !is_any_present                                ? JOB_ENDED
           : open_recovery(status) != NULL                ? JOB_RECOVERING
           : has_node_in(status, CHRONICLE_NODE_STARTING) ? JOB_STARTING
           : has_node_in(status, CHRONICLE_NODE_TRAINING) ? JOB_TRAINING
           : has_node_in(status, CHRONICLE_NODE_RUNNING)  ? JOB_RUNNING
           : has_node_in(status, CHRONICLE_NODE_ENDING)   ? JOB_ENDING
                                                          : JOB_WAITING;
}

void chronicle_status_take(struct chronicle_status *status, const struct chronicle_entry *entry) {
    if (!status->has_begun) {
        status->max_restarts = -1;
        status->here = -1;
        status->hung_rank = -1;
        status->step = status->step_of_world = status->lost_step = -1;
        status->rate = -1;
    }
    chronicle_status_advance(status, entry->time);
    struct chronicle_node *node = entry->node != NULL ? node_of(status, entry->node) : NULL;
    if (node == NULL) {
        return;
    }
    if (entry->kind != CHRONICLE_NODE_LOST) {
        node->said = entry->time;
    }
    take_kind(status, node, entry);
    end_recovery(status);
    enum job_state state = judge(status);
    if (state != status->state) {
        status->state = state;
        status->since = status->now;
    }
}

const char *job_state_name(enum job_state state) {
    static const char *const names[] = {
        "waiting", "starting", "running", "training", "recovering", "ending", "ended"};
    return names[state];
}

const char *job_result_name(enum job_result result) {
    static const char *const names[] = {NULL, "succeeded", "stopped", "failed"};
    return names[result];
}

const char *chronicle_node_state_name(enum chronicle_node_state state) {
    static const char *const names[] = {"waiting", "starting", "running", "training", "stopping",
        "joining", "ending", "ended", "left", "lost"};
    return names[state];
}

const char *recovery_moment_name(enum recovery_moment moment) {
    static const char *const names[] = {
        "failed", "noticed", "stopped", "agreed", "started", "training"};
    return names[moment];
}
