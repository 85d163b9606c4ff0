/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/agent_job.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

/* A process's memory that the kernel shows as its environment is no larger. */
#define SHOWN_MAXIMUM ((size_t)8 << 20)

void agent_job_hide_token(void) {
    static const char start[] = "\0" AGENT_JOB_TOKEN_VARIABLE "=";
    /* The kernel puts the environment's texts between these two. */
    char *next = (char *)getauxval(AT_RANDOM);
    char *end = (char *)getauxval(AT_EXECFN);
    if (next == NULL || end <= next || (size_t)(end - next) > SHOWN_MAXIMUM) {
        return;
    }
    while ((next = memmem(next, (size_t)(end - next), start, sizeof start - 1)) != NULL) {
        next += sizeof start - 1;
        explicit_bzero(next, strnlen(next, (size_t)(end - next)));
    }
}

struct text_list agent_job_environment(const struct text_list *environment) {
    struct text_list others = {0};
    for (size_t i = 0; i < environment->count; i++) {
        if (!text_starts_with(environment->items[i], AGENT_JOB_TOKEN_VARIABLE "=")) {
            text_list_add(&others, environment->items[i]);
        }
    }
    return others;
}

int agent_job_run(const struct agent_program *program, const struct launch_config *config,
    const struct text_list *environment) {
    struct log_sink *sink =
        log_sink_new(text_list_variable(environment, "LOGLEVEL"), STDERR_FILENO);
    int status = agent_run_for(program, config, environment, sink);
    log_sink_free(sink);
    return status;
}
