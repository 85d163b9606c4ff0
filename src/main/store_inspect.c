/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/store_inspect.h"

#include <stdio.h>
#include <stdlib.h>

#include "main/exit_status.h"
#include "main/store_session.h"
#include "options/option_parser.h"

#define DEFAULT_HOST "localhost"
#define DEFAULT_PORT 29500

static const char *choose_host(
    const struct option_result *options, const struct text_list *environment) {
    const struct option_value *host = option_result_value(options, "host");
    if (host->is_set) {
        return host->text;
    }
    const char *master = text_list_variable(environment, "MASTER_ADDR");
    return master != NULL && *master != '\0' ? master : DEFAULT_HOST;
}

/* 0 when what was given is no port; then the mistake is in the result. */
static int choose_port(struct option_result *options, const struct text_list *environment) {
    const struct option_value *port = option_result_value(options, "port");
    const char *master = text_list_variable(environment, "MASTER_PORT");
    int64_t number = DEFAULT_PORT;
    if (port->is_set) {
        number = port->integer;
    } else if (master != NULL && text_parse_integer(master, &number) != FAILURE_NONE) {
        number = 0;
    }
    if (number < 1 || number > 65535) {
        option_result_reject(
            options, "port", port->is_set ? "must be 1 to 65535" : "MASTER_PORT is no port");
        return 0;
    }
    return (int)number;
}

static void check_times(struct option_result *options) {
    if (option_result_value(options, "timeout")->number < 0) {
        option_result_reject(options, "timeout", "must not be negative");
    }
}

static int ask(const struct store_inspect_command *command, const char *program,
    struct option_result *options, const struct text_list *environment) {
    int port = choose_port(options, environment);
    check_times(options);
    if (options->outcome != OPTION_OUTCOME_VALUES) {
        fputs(options->text, stderr);
        return EXIT_STATUS_USAGE;
    }
    struct store_session *session = store_session_new(program, choose_host(options, environment),
        port, duration_from_seconds(option_result_value(options, "timeout")->number));
    if (session == NULL) {
        return EXIT_FAILURE;
    }
    int status = command->run(session, options);
    store_session_free(session);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "%s: error: cannot write the answer\n", program);
        return EXIT_FAILURE;
    }
    return status;
}

int store_inspect(const struct store_inspect_command *command, const struct text_list *arguments,
    const struct text_list *environment) {
    char *program = text_format("muster store %s", command->name);
    struct option_result options;
    option_parse(&command->table, program, arguments, environment, &options);
    int status = EXIT_SUCCESS;
    switch (options.outcome) {
    case OPTION_OUTCOME_VALUES:
        status = ask(command, program, &options, environment);
        break;
    case OPTION_OUTCOME_PRINT:
        fputs(options.text, stdout);
        break;
    case OPTION_OUTCOME_MISTAKE:
        fputs(options.text, stderr);
        status = EXIT_STATUS_USAGE;
        break;
    }
    option_result_clear(&options);
    free(program);
    return status;
}
