/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/run_command.h"

#include <stdio.h>
#include <stdlib.h>

#include "agent/agent.h"
#include "base/utf8.h"
#include "main/exit_status.h"
#include "options/launch/launch_options.h"

int run_command(
    const char *program, const struct text_list *arguments, const struct text_list *environment) {
    struct launch_options options;
    struct text_list inherited;
    int status = EXIT_STATUS_USAGE;
    launch_options_parse(program, arguments, environment, &options);
    switch (options.outcome) {
    case OPTION_OUTCOME_VALUES:
        agent_job_hide_token();
        (void)unsetenv(AGENT_JOB_TOKEN_VARIABLE);
        inherited = agent_job_environment(environment);
        status = agent_job_run(NULL, &options.config, &inherited);
        text_list_clear(&inherited);
        break;
    case OPTION_OUTCOME_PRINT:
        fputs(options.text, stdout);
        status = EXIT_SUCCESS;
        break;
    case OPTION_OUTCOME_MISTAKE:
        utf8_make_string_printable(options.text);
        fputs(options.text, stderr);
        break;
    }
    launch_options_clear(&options);
    return status;
}
