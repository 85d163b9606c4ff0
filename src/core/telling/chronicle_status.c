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
    *status = (struct chronicle_status){0};
}

void chronicle_status_copy(
    const struct chronicle_status *status, struct chronicle_status *out_copy) {
    *out_copy = *status;
    out_copy->node_capacity = out_copy->recovery_capacity = 0;
    out_copy->nodes = memory_reserve(
        NULL, &out_copy->node_capacity, status->known_nodes + 1, sizeof *out_copy->nodes);
    out_copy->recoveries = memory_reserve(NULL, &out_copy->recovery_capacity,
        status->recovery_count + 1, sizeof *out_copy->recoveries);
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

static bool has_node_in(const struct chronicle_status *status, enum chronicle_node_state state) {
    for (size_t i = 0; i < status->known_nodes; i++) {
        if (status->nodes[i].state == state) {
            return true;
        }
    }
    return false;
}

/* NULL: there are too many. */
static struct chronicle_node *node_of(struct chronicle_status *status, const char *name) {
    for (size_t i = 0; i < status->known_nodes; i++) {
        if (text_equals(status->nodes[i].name, name)) {
            return &status->nodes[i];
        }
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
        .spares_ready = -1,
        .spares = -1};
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

static void begin_recovery(struct chronicle_status *status, enum chronicle_cause cause,
    const struct chronicle_node *node, const struct chronicle_entry *entry) {
    if (open_recovery(status) != NULL) {
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
        .cause = cause, .round = status->round, .rank = -1, .exit = INT_MIN};
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
    reach(status, RECOVERY_FAILED, NULL);
    reach(status, RECOVERY_NOTICED, entry->kind == CHRONICLE_NODE_LOST ? NULL : node);
}

/* All that go on run again; or nobody goes on. */
static void end_recovery(struct chronicle_status *status) {
    struct chronicle_recovery *recovery = open_recovery(status);
    if (recovery == NULL || has_node_in(status, CHRONICLE_NODE_STOPPING) ||
        has_node_in(status, CHRONICLE_NODE_JOINING) ||
        has_node_in(status, CHRONICLE_NODE_STARTING)) {
        return;
    }
    recovery->is_over = recovery->moments[RECOVERY_STARTED].nanoseconds != 0 &&
                        has_node_in(status, CHRONICLE_NODE_RUNNING);
    /* Where nodes run, and none is to start, the failure is news of which the others hear next. */
    recovery->is_given_up = !recovery->is_over && !has_node_in(status, CHRONICLE_NODE_RUNNING);
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

static void take_joined(struct chronicle_node *node, const struct chronicle_entry *entry) {
    const char *version = chronicle_entry_text(entry, CHRONICLE_VERSION);
    node->rank = (int)chronicle_entry_number(entry, CHRONICLE_RANK, -1);
    node->first_rank = (int)chronicle_entry_number(entry, CHRONICLE_FIRST_RANK, -1);
    node->workers = (int)chronicle_entry_number(entry, CHRONICLE_WORKERS, -1);
    free(node->version);
    node->version = memory_duplicate_string(version);
    node->state = CHRONICLE_NODE_STARTING;
}

static void take_waiting(struct chronicle_status *status, struct chronicle_node *node,
    const struct chronicle_entry *entry) {
    status->minimum_nodes = (int)chronicle_entry_number(entry, CHRONICLE_MIN, 0);
    status->maximum_nodes = (int)chronicle_entry_number(entry, CHRONICLE_MAX, 0);
    status->here = (int)chronicle_entry_number(entry, CHRONICLE_HERE, -1);
    if (node->state != CHRONICLE_NODE_JOINING) {
        node->state = CHRONICLE_NODE_WAITING;
    }
}

static void take_stopping(struct chronicle_status *status, struct chronicle_node *node,
    const struct chronicle_entry *entry) {
    enum chronicle_cause cause =
        chronicle_cause_from_name(chronicle_entry_text(entry, CHRONICLE_CAUSE));
    if (cause == CHRONICLE_CAUSE_NONE || cause == CHRONICLE_CAUSE_COUNT) {
        node->state = CHRONICLE_NODE_ENDING;
        return;
    }
    begin_recovery(status, cause, node, entry);
    node->state = CHRONICLE_NODE_STOPPING;
}

static void take_failed(struct chronicle_status *status, struct chronicle_node *node,
    const struct chronicle_entry *entry) {
    bool has_hung = chronicle_entry_number(entry, CHRONICLE_RANK, -1) == status->hung_rank;
    node->failed_first += open_recovery(status) == NULL ? 1 : 0;
    begin_recovery(
        status, has_hung ? CHRONICLE_CAUSE_HANG : CHRONICLE_CAUSE_WORKER_FAILED, node, entry);
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
    if (node->state != CHRONICLE_NODE_GONE) {
        node->state = CHRONICLE_NODE_ENDED;
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
        take_joined(node, entry);
        reach(status, RECOVERY_AGREED, node);
        break;
    case CHRONICLE_STARTED:
        node->state = CHRONICLE_NODE_RUNNING;
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
            node->state = CHRONICLE_NODE_JOINING;
            reach(status, RECOVERY_STOPPED, node);
        }
        break;
    case CHRONICLE_NODE_LOST:
        node->state = CHRONICLE_NODE_MISSED;
        begin_recovery(status, CHRONICLE_CAUSE_NODE_LOST, node, entry);
        break;
    case CHRONICLE_NODE_LEFT:
        node->state = CHRONICLE_NODE_GONE;
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
    case CHRONICLE_TRAINING:
    case CHRONICLE_CHECKPOINT:
    case CHRONICLE_SLOW:
    case CHRONICLE_HOST:
    case CHRONICLE_RESTART: /* its world has said so */
    case CHRONICLE_EXCLUDED:
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
           : has_node_in(status, CHRONICLE_NODE_RUNNING)  ? JOB_RUNNING
           : has_node_in(status, CHRONICLE_NODE_ENDING)   ? JOB_ENDING
                                                          : JOB_WAITING;
}

void chronicle_status_take(struct chronicle_status *status, const struct chronicle_entry *entry) {
    if (!status->has_begun) {
        status->max_restarts = -1;
        status->here = -1;
        status->hung_rank = -1;
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
        "waiting", "starting", "running", "recovering", "ending", "ended"};
    return names[state];
}

const char *job_result_name(enum job_result result) {
    static const char *const names[] = {NULL, "succeeded", "stopped", "failed"};
    return names[result];
}

const char *chronicle_node_state_name(enum chronicle_node_state state) {
    static const char *const names[] = {
        "waiting", "starting", "running", "stopping", "joining", "ending", "ended", "left", "lost"};
    return names[state];
}

const char *recovery_moment_name(enum recovery_moment moment) {
    static const char *const names[] = {"failed", "noticed", "stopped", "agreed", "started"};
    return names[moment];
}
