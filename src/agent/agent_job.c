/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/agent_job.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TOKEN_VARIABLE "MUSTER_JOB_TOKEN"

/* What workers inherit: not the job's token, which is the agents' alone. It goes from this
 * process's own variables, too, which `ps e` and /proc show. The options have a copy. */
static struct text_list take_token_out(const struct text_list *environment) {
    struct text_list others = {0};
    char *value = getenv(TOKEN_VARIABLE);
    if (value != NULL) {
        explicit_bzero(value, strlen(value));
        (void)unsetenv(TOKEN_VARIABLE);
    }
    for (size_t i = 0; i < environment->count; i++) {
        if (!text_starts_with(environment->items[i], TOKEN_VARIABLE "=")) {
            text_list_add(&others, environment->items[i]);
        }
    }
    return others;
}

int agent_job_run(const struct agent_program *program, const struct launch_config *config,
    const struct text_list *environment) {
    struct log_sink *sink =
        log_sink_new(text_list_variable(environment, "LOGLEVEL"), STDERR_FILENO);
    struct text_list inherited = take_token_out(environment);
    int status = agent_run_for(program, config, &inherited, sink);
    text_list_clear(&inherited);
    log_sink_free(sink);
    return status;
}
