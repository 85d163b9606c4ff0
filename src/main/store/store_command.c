/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/store/store_command.h"

#include <muster/store_server.h>
#include <stdio.h>

#include "main/command.h"
#include "main/store/store_session.h"
#include "options/argparse/option_parser.h"
#include "options/launch/option_values.h"

/* `muster store serve`: a TCPStore server as a process of its own. */

static const char program[] = "muster store serve";

static const struct option_definition definitions[] = {
    OPTION_DEFINITION_HELP,
    {
        .destination = "host",
        .names = {"--host"},
        .help = "The address to listen on: a name, IPv4 or IPv6. Default: all of both families.",
    },
    {
        .destination = "port",
        .names = {"--port"},
        .kind = OPTION_INTEGER,
        .default_text = "29500",
        .help = "The port to listen on; 0 takes a free one. Default: 29500.",
    },
    {
        .destination = "fd",
        .names = {"--fd"},
        .kind = OPTION_INTEGER,
        .help = "Serve on this inherited descriptor, a bound TCP socket, instead of --host and "
                "--port.",
    },
    {
        .destination = "maximum_key_bytes",
        .names = {"--maximum-key-bytes"},
        .kind = OPTION_INTEGER,
        .help = "The longest key, its leading '/' included. Default: 8192.",
    },
    {
        .destination = "maximum_value_bytes",
        .names = {"--maximum-value-bytes"},
        .kind = OPTION_INTEGER,
        .help = "The longest value of one request. Default: 8 MiB.",
    },
    {
        .destination = "maximum_keys_per_request",
        .names = {"--maximum-keys-per-request"},
        .kind = OPTION_INTEGER,
        .help = "Keys in one request about several. Default: 131072.",
    },
    {
        .destination = "maximum_request_bytes",
        .names = {"--maximum-request-bytes"},
        .kind = OPTION_INTEGER,
        .help = "The longest request about several keys. Default: 256 MiB.",
    },
    {
        .destination = "maximum_queued_bytes",
        .names = {"--maximum-queued-bytes"},
        .kind = OPTION_INTEGER,
        .help = "The longest reply, with those before it that the client has not read. Default: "
                "256 MiB.",
    },
    {
        .destination = "store_memory",
        .names = {"--store-memory", "--maximum-memory"},
        .help = "How much may be held for all clients (keys, values, queues, unfinished requests "
                "and unread replies): bytes, as 512M, or a percentage of what the cgroup or the "
                "machine has. Default: a quarter of that, but not more than 4 GiB.",
    },
    {
        .destination = "maximum_connections",
        .names = {"--maximum-connections"},
        .kind = OPTION_INTEGER,
        .help = "Clients at the same time. Default: 131072, or what the limit of open files "
                "allows.",
    },
    {
        .destination = "silence_timeout",
        .names = {"--silence-timeout"},
        .kind = OPTION_FLOAT,
        .default_text = "180",
        .help = "Seconds a client's machine may not answer at all before its connection is closed; "
                "2 or more. Default: 180.",
    },
    {
        .destination = "token_file",
        .names = {"--token-file"},
        .help = "File with a token, which only this user may read (mode 0600). Clients that do not "
                "prove that they have it are turned away. PyTorch's cannot.",
    },
};

static const struct option_table table = {
    .description =
        "Serve a store that PyTorch's TCPStore clients (2.1 and later) can use. When it listens, "
        "one line is printed: PORT and the number. SIGTERM or SIGINT end it.",
    .definitions = definitions,
    .definition_count = sizeof definitions / sizeof definitions[0],
};

/* Reads a ceiling from its option; a value that is not positive is a mistake. */
static size_t read_limit(struct option_result *result, const char *destination) {
    const struct option_value *value = option_result_value(result, destination);
    if (value->is_set && value->integer <= 0) {
        option_result_reject(result, destination, "must be positive");
    }
    return value->is_set ? (size_t)value->integer : 0;
}

static void read_memory(
    struct option_result *result, struct muster_store_server_settings *settings) {
    struct text reason = {0};
    uint64_t bytes = 0;
    if (option_result_value(result, "store_memory")->is_set) {
        enum failure_code code = option_parse_memory(
            option_result_text(result, "store_memory"), &bytes, &settings->memory_percent, &reason);
        (void)option_result_settle(result, "store_memory", code, &reason);
    }
    settings->memory = bytes < SIZE_MAX ? (size_t)bytes : SIZE_MAX;
}

static void read_address(
    struct option_result *result, struct muster_store_server_settings *settings) {
    int64_t port = option_result_value(result, "port")->integer;
    if (port < 0 || port > 65535) {
        option_result_reject(result, "port", "must be 0 to 65535");
    }
    const struct option_value *fd = option_result_value(result, "fd");
    if (fd->is_set && (fd->integer < 0 || fd->integer > INT32_MAX)) {
        option_result_reject(result, "fd", "must be a descriptor");
    }
    settings->host = option_result_value(result, "host")->text;
    settings->port = (int)port;
    settings->has_fd = fd->is_set;
    settings->fd = (int)fd->integer;
}

static void read_settings(
    struct option_result *result, struct muster_store_server_settings *settings) {
    settings->key_maximum = read_limit(result, "maximum_key_bytes");
    settings->value_maximum = read_limit(result, "maximum_value_bytes");
    settings->request_keys = read_limit(result, "maximum_keys_per_request");
    settings->request_maximum = read_limit(result, "maximum_request_bytes");
    settings->reply_maximum = read_limit(result, "maximum_queued_bytes");
    settings->connection_maximum = read_limit(result, "maximum_connections");
    settings->silence_timeout = option_result_value(result, "silence_timeout")->number;
    settings->token_file = option_result_value(result, "token_file")->text;
    read_memory(result, settings);
    read_address(result, settings);
    if (settings->silence_timeout < 2) {
        option_result_reject(result, "silence_timeout", "must be 2 or more");
    }
}

/* The state of the service. */
struct service {
    struct muster_store_server_settings settings;
    const struct log *log;
    struct muster_store_server *server; /* NULL until it was created */
};

static void write_log(void *context, int level, const char *origin, const char *message) {
    const struct service *service = context;
    command_service_log(service->log, level, origin, message);
}

/* The server has a thread of its own, and this loop waits for signals only. */
static enum failure_code start(
    void *context, struct event_loop *loop, const struct log *log, struct failure *failure) {
    struct service *service = context;
    struct muster_failure reason;
    (void)loop;
    service->log = log;
    service->settings.log = write_log;
    service->settings.context = service;
    if (muster_store_server_new(&service->settings, &service->server, &reason) != MUSTER_OK) {
        return failure_set(failure, FAILURE_SYSTEM, "%s", reason.message);
    }
    if (printf("PORT %d\n", muster_store_server_port(service->server)) < 0 || fflush(stdout) != 0) {
        return failure_set(failure, FAILURE_SYSTEM, "cannot print the port");
    }
    return FAILURE_NONE;
}

static void stop(void *context) {
    struct service *service = context;
    muster_store_server_free(service->server);
}

static int serve(
    const struct muster_store_server_settings *settings, const struct text_list *environment) {
    struct service service = {.settings = *settings};
    const struct command_service command = {program, start, stop, &service};
    return command_service_run(&command, environment);
}

/* Prints one line, "PORT <n>", when clients can connect. Returns 0 after SIGTERM or SIGINT, 1 when
 * the port cannot be opened, 2 when the command line is invalid. */
static int store_serve(const struct text_list *arguments, const struct text_list *environment) {
    struct option_result result;
    struct muster_store_server_settings settings = MUSTER_STORE_SERVER_SETTINGS;
    option_parse(&table, program, arguments, environment, &result);
    if (result.outcome == OPTION_OUTCOME_VALUES) {
        read_settings(&result, &settings);
    }
    int status = result.outcome == OPTION_OUTCOME_VALUES ? serve(&settings, environment)
                                                         : command_print(&result);
    option_result_clear(&result);
    return status;
}

/* Command. */

static void print_usage(FILE *stream) {
    fputs("usage: muster store serve [OPTION]...                    serve a store, as PyTorch's "
          "TCPStore\n",
        stream);
    for (size_t i = 0; i < store_inspect_command_count; i++) {
        const struct store_inspect_command *command = &store_inspect_commands[i];
        fprintf(stream, "       muster store %-34s %s\n", command->synopsis, command->summary);
    }
    fputs("\n"
          "A store is found at --host and --port, or at MASTER_ADDR and MASTER_PORT, or in a\n"
          "FileStore's --file. Where none of these is said, the one job of this user that runs on\n"
          "this machine is found by itself.\n"
          "`muster store COMMAND --help` tells more about each.\n",
        stream);
}

static const struct store_inspect_command *find(const char *name) {
    for (size_t i = 0; i < store_inspect_command_count; i++) {
        if (text_equals(store_inspect_commands[i].name, name)) {
            return &store_inspect_commands[i];
        }
    }
    return NULL;
}

static bool run(const char *name, const struct text_list *arguments,
    const struct text_list *environment, int *out_status) {
    const struct store_inspect_command *command = find(name);
    if (text_equals(name, "serve")) {
        *out_status = store_serve(arguments, environment);
    } else if (command != NULL) {
        *out_status = store_inspect(command, arguments, environment);
    } else {
        return false;
    }
    return true;
}

int store_command(const struct text_list *arguments, const struct text_list *environment) {
    static const struct command_family family = {"store", print_usage, run};
    return command_family_run(&family, arguments, environment);
}
