/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/store/store_inspect.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "main/command_family.h"
#include "main/exit_status.h"
#include "main/store/store_finding.h"
#include "main/store/store_session.h"
#include "options/argparse/option_parser.h"

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

/* Returns 0 when the value is not a port; the mistake is then in the result. */
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

/* Returns false when the value is not a place; the mistake is then in the result. */
static bool choose_place(struct option_result *options, const struct text_list *environment,
    struct store_place *out_place) {
    const struct option_value *file = option_result_value(options, "file");
    if (!file->is_set) {
        *out_place = (struct store_place){
            .host = choose_host(options, environment),
            .port = choose_port(options, environment),
            .token_file = option_result_value(options, "token_file")->text,
            .silence_timeout = option_result_value(options, "silence_timeout")->number,
        };
        return out_place->port != 0;
    }
    if (option_result_value(options, "host")->is_set ||
        option_result_value(options, "port")->is_set) {
        option_result_reject(options, "file", "not allowed with --host or --port");
        return false;
    }
    *out_place = (struct store_place){.path = file->text};
    return true;
}

static bool says_endpoint(
    const struct option_result *options, const struct text_list *environment) {
    static const char *const names[] = {"host", "port", "file"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (option_result_value(options, names[i])->is_set) {
            return true;
        }
    }
    return text_list_variable(environment, "MASTER_ADDR") != NULL ||
           text_list_variable(environment, "MASTER_PORT") != NULL;
}

/* Where nobody says which store is meant, the job of this machine has it; where there is no such
 * job, the place stays the one at which a store is by default. False when there are several. */
static bool find_place(const char *program, const struct text_list *environment,
    struct job_list *jobs, struct store_place *place) {
    enum store_finding finding = store_find_job(program, environment, jobs);
    if (finding == STORE_FINDING_ONE) {
        place->host = jobs->items[0].host;
        place->port = jobs->items[0].port;
    }
    return finding != STORE_FINDING_SEVERAL;
}

static void check_times(struct option_result *options) {
    if (option_result_value(options, "silence_timeout")->number < 2) {
        option_result_reject(options, "silence_timeout", "must be 2 or more");
    }
    if (option_result_value(options, "timeout")->number < 0) {
        option_result_reject(options, "timeout", "must not be negative");
    }
}

static int ask_at(const struct store_inspect_command *command, const char *program,
    const struct option_result *options, const struct store_place *place) {
    struct store_session *session =
        store_session_new(program, place, option_result_value(options, "timeout")->number);
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

static int ask(const struct store_inspect_command *command, const char *program,
    struct option_result *options, const struct text_list *environment) {
    struct store_place place;
    struct job_list jobs = {0};
    bool has_place = choose_place(options, environment, &place);
    check_times(options);
    if (!has_place || options->outcome != OPTION_OUTCOME_VALUES) {
        fputs(options->text, stderr);
        return EXIT_STATUS_USAGE;
    }
    bool is_clear =
        says_endpoint(options, environment) || find_place(program, environment, &jobs, &place);
    int status = is_clear ? ask_at(command, program, options, &place) : EXIT_STATUS_USAGE;
    job_list_clear(&jobs);
    return status;
}

int store_inspect(const struct store_inspect_command *command, const struct text_list *arguments,
    const struct text_list *environment) {
    char *program = text_format("muster store %s", command->name);
    struct option_result options;
    option_parse(&command->table, program, arguments, environment, &options);
    int status = options.outcome == OPTION_OUTCOME_VALUES
                     ? ask(command, program, &options, environment)
                     : command_print(&options);
    option_result_clear(&options);
    free(program);
    return status;
}
