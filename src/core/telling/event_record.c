/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/telling/event_record.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/text.h"

static const char *const run_result_names[RUN_STATE_COUNT] = {
    [RUN_STATE_UNKNOWN] = "UNKNOWN",
    [RUN_STATE_STOPPED] = "STOPPED",
    [RUN_STATE_SUCCEEDED] = "SUCCEEDED",
    [RUN_STATE_FAILED] = "FAILED",
};

const char *run_state_name(enum run_state state) {
    return state >= RUN_STATE_UNKNOWN && state < RUN_STATE_COUNT ? run_result_names[state] : NULL;
}

enum run_state run_state_from_name(const char *name) {
    for (int state = RUN_STATE_UNKNOWN; state < RUN_STATE_COUNT; state++) {
        if (text_equals(run_result_names[state], name)) {
            return (enum run_state)state;
        }
    }
    return RUN_STATE_COUNT;
}

void run_group_copy(const struct run_group *group, struct run_group *out_copy) {
    *out_copy = *group;
    out_copy->run_id = memory_duplicate_string(group->run_id);
    out_copy->role = memory_duplicate_string(group->role);
    out_copy->master_host = memory_duplicate_string(group->master_host);
    out_copy->pids = memory_duplicate(group->pids, group->worker_count * sizeof *group->pids);
}

void run_group_clear(struct run_group *group) {
    free(group->run_id);
    free(group->role);
    free(group->master_host);
    free(group->pids);
    *group = (struct run_group){0};
}

void run_result_clear(struct run_result *result) {
    for (size_t i = 0; i < result->failure_count; i++) {
        failure_account_clear(&result->failures[i]);
    }
    for (size_t i = 0; i < result->worker_count; i++) {
        bytes_clear(&result->workers[i].return_value);
    }
    failure_account_clear(&result->root_cause);
    free(result->failures);
    free(result->workers);
    free(result->message);
    *result = (struct run_result){0};
}

/* Event record. */

struct event_plan event_plan_step(enum agent_phase before, const struct agent_machine *machine) {
    return (struct event_plan){
        .has_begun_rendezvous = before != AGENT_JOINING && machine->phase == AGENT_JOINING,
        .has_left_rendezvous = before == AGENT_JOINING && machine->phase != AGENT_JOINING,
        .has_joined = before == AGENT_JOINING && machine->phase == AGENT_STARTING,
        .has_started = before == AGENT_STARTING && machine->phase == AGENT_RUNNING,
    };
}

bool event_plan_holds_watchdog_stop(const struct agent_machine *machine) {
    return machine->phase == AGENT_STOPPING && machine->stop_reason == AGENT_STOP_CLEAN_UP;
}

static bool has_start_failure(const struct worker_group *workers) {
    for (size_t i = 0; i < workers->failure_count; i++) {
        if (workers->failures[i].start_message != NULL) {
            return true;
        }
    }
    return false;
}

bool event_plan_has_worker_ends(
    const struct agent_outcome *outcome, const struct worker_group *workers) {
    return (outcome->kind == AGENT_OUTCOME_FAILED && !has_start_failure(workers)) ||
           (outcome->kind == AGENT_OUTCOME_SUCCEEDED && worker_group_has_succeeded(workers));
}

const struct worker_failure *event_plan_failure(
    const struct worker_group *workers, int local_rank) {
    for (size_t i = 0; i < workers->failure_count; i++) {
        const struct worker_failure *failure = &workers->failures[i];
        if (failure->local_rank == local_rank && !failure->is_from_our_signal) {
            return failure;
        }
    }
    return NULL;
}

enum event_state event_plan_worker_end(const struct worker_group *workers, int local_rank) {
    if (workers->states[local_rank] == WORKER_SUCCEEDED) {
        return EVENT_STATE_SUCCEEDED;
    }
    return event_plan_failure(workers, local_rank) != NULL ? EVENT_STATE_FAILED
                                                           : EVENT_STATE_TERMINATED;
}

enum event_state event_plan_agent_end(
    const struct agent_outcome *outcome, const struct worker_group *workers) {
    switch (outcome->kind) {
    case AGENT_OUTCOME_SUCCEEDED:
        return EVENT_STATE_SUCCEEDED;
    case AGENT_OUTCOME_FAILED:
        return has_start_failure(workers) ? EVENT_STATE_FAILED : EVENT_STATE_SUCCEEDED;
    case AGENT_OUTCOME_PEER_FAILED:
    case AGENT_OUTCOME_JOIN_FAILED:
    case AGENT_OUTCOME_SIGNALLED:
    case AGENT_OUTCOME_UNFIT:
    case AGENT_OUTCOME_EXCLUDED:
        break;
    }
    return EVENT_STATE_FAILED;
}

const char *event_state_name(enum event_state state) {
    switch (state) {
    case EVENT_STATE_RENDEZVOUS:
        return "RENDEZVOUS";
    case EVENT_STATE_ASSIGN_WORKER_RANKS:
        return "ASSIGN_WORKER_RANKS";
    case EVENT_STATE_START:
        return "START";
    case EVENT_STATE_RUNNING:
        return "RUNNING";
    case EVENT_STATE_SUCCEEDED:
        return "SUCCEEDED";
    case EVENT_STATE_FAILED:
        return "FAILED";
    case EVENT_STATE_TERMINATED:
        return "TERMINATED";
    }
    return "UNKNOWN";
}

const char *event_standby_name(enum event_standby standby) {
    static const char *const names[] = {
        [EVENT_STANDBY_NONE] = "standby",
        [EVENT_STANDBY_READY] = "standby.ready",
        [EVENT_STANDBY_USED] = "standby.used",
        [EVENT_STANDBY_DIRTY] = "standby.dirty",
    };
    return names[standby];
}

const char *event_node_state_name(enum event_node_state state) {
    static const char *const names[] = {"INIT", "RUNNING", "SUCCEEDED", "FAILED"};
    return names[state];
}

const char *event_watchdog_name(enum event_watchdog watchdog) {
    switch (watchdog) {
    case EVENT_WATCHDOG_STARTED:
        return "watchdog started";
    case EVENT_WATCHDOG_STOPPED:
        return "watchdog stopped";
    case EVENT_WATCHDOG_TIMER_EXPIRED:
        return "timer expired";
    case EVENT_WATCHDOG_KILL:
        return "kill worker process";
    case EVENT_WATCHDOG_NONE:
        break;
    }
    return "";
}
