/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads arbitrary text as Slurm's lists of hosts and of tasks. The names of an accepted list are
 * lists of one name each. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "options/slurm/slurm_step.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char *text = memory_allocate(size + 1);
    struct text_list hosts = {0};
    struct text_list again = {0};
    struct text_list environment = {0};
    struct slurm_step step;
    struct text reason = {0};
    if (size > 0) {
        memcpy(text, data, size);
    }
    text_list_set_variable(&environment, "SLURM_JOB_ID", "1");
    text_list_set_variable(&environment, "SLURM_STEP_ID", "1");
    text_list_set_variable(&environment, "SLURM_STEP_NODELIST", "node");
    text_list_set_variable(&environment, "SLURM_STEP_TASKS_PER_NODE", text);
    if (slurm_step_read(&environment, &step, &reason) == FAILURE_NONE && step.tasks_per_node < 0) {
        abort();
    }
    slurm_step_clear(&step);
    text_list_clear(&environment);
    text_clear(&reason);
    if (hostlist_expand(text, &hosts) == FAILURE_NONE) {
        const char *last = hosts.items[hosts.count - 1];
        if (hosts.count > HOSTLIST_MAXIMUM_HOSTS || strlen(last) > HOSTLIST_MAXIMUM_NAME ||
            hostlist_expand(last, &again) != FAILURE_NONE || again.count != 1 ||
            strcmp(again.items[0], last) != 0) {
            abort();
        }
    }
    text_list_clear(&hosts);
    text_list_clear(&again);
    free(text);
    return 0;
}
