/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs a command as a job of one worker, with libmuster, and appends the agent's metrics to a file:
 *
 *     ./metrics_to_file FILE COMMAND ARGUMENT... */
#include <stdio.h>
#include <stdlib.h>

#include <muster/agent.h>
#include <muster/metrics.h>

static void note(void *context, const struct muster_metric *metric) {
    char line[256];
    if (muster_metric_format(metric, line, sizeof line, NULL, NULL) == MUSTER_OK) {
        fprintf(context, "%s\n", line);
    }
}

int main(int argument_count, char **arguments) {
    struct muster_agent_settings settings = MUSTER_AGENT_SETTINGS;
    struct muster_failure failure;
    int status = EXIT_FAILURE;
    if (argument_count < 3) {
        fputs("usage: metrics_to_file FILE COMMAND ARGUMENT...\n", stderr);
        return 2;
    }
    FILE *file = fopen(arguments[1], "a");
    if (file == NULL) {
        perror(arguments[1]);
        return EXIT_FAILURE;
    }
    settings.entrypoint = arguments[2];
    settings.args = (const char *const *)&arguments[3];
    settings.max_restarts = 0;
    settings.metric = note;
    settings.context = file;
    if (muster_agent_run(&settings, &status, &failure) != MUSTER_OK) {
        fprintf(stderr, "metrics_to_file: %s\n", failure.message);
    }
    return fclose(file) == 0 ? status : EXIT_FAILURE;
}
