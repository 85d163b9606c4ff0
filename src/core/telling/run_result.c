/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/telling/run_result.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/text.h"

static const char *const names[RUN_STATE_COUNT] = {
    [RUN_STATE_UNKNOWN] = "UNKNOWN",
    [RUN_STATE_STOPPED] = "STOPPED",
    [RUN_STATE_SUCCEEDED] = "SUCCEEDED",
    [RUN_STATE_FAILED] = "FAILED",
};

const char *run_state_name(enum run_state state) {
    return state >= RUN_STATE_UNKNOWN && state < RUN_STATE_COUNT ? names[state] : NULL;
}

enum run_state run_state_from_name(const char *name) {
    for (int state = RUN_STATE_UNKNOWN; state < RUN_STATE_COUNT; state++) {
        if (text_equals(names[state], name)) {
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
