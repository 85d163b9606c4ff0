/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/telling/run_result.h"

#include <stdlib.h>

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
