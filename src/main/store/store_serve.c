/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/store/store_serve.h"

#include <stdio.h>

#include "core/store/store_memory.h"
#include "host/machine/memory_limit.h"
#include "host/store/job_token.h"
#include "host/store/store_server.h"
#include "host/network/tcp_listener.h"
#include "main/command_family.h"
#include "main/command_service.h"
#include "options/argparse/option_parser.h"
#include "options/launch/option_values.h"

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
static void read_limit(struct option_result *result, const char *destination, size_t *out_limit) {
    const struct option_value *value = option_result_value(result, destination);
    if (!value->is_set) {
        return;
    }
    if (value->integer <= 0) {
        option_result_reject(result, destination, "must be positive");
        return;
    }
    *out_limit = (size_t)value->integer;
}

static struct store_memory read_memory(struct option_result *result) {
    struct store_memory memory = {0};
    struct text reason = {0};
    const char *text = option_result_text(result, "store_memory");
    if (option_result_value(result, "store_memory")->is_set) {
        enum failure_code code = option_parse_memory(text, &memory.bytes, &memory.percent, &reason);
        (void)option_result_settle(result, "store_memory", code, &reason);
    }
    return memory;
}

static void read_limits(struct option_result *result, struct store_limits *out_limits) {
    struct store_memory memory = read_memory(result);
    *out_limits = store_memory_limits(&memory, memory_limit_read(""));
    read_limit(result, "maximum_key_bytes", &out_limits->key_bytes);
    read_limit(result, "maximum_value_bytes", &out_limits->value_bytes);
    read_limit(result, "maximum_keys_per_request", &out_limits->keys_per_request);
    read_limit(result, "maximum_request_bytes", &out_limits->request_bytes);
    read_limit(result, "maximum_queued_bytes", &out_limits->queued_reply_bytes);
    read_limit(result, "maximum_connections", &out_limits->connections);
}

static void check_numbers(struct option_result *result) {
    int64_t port = option_result_value(result, "port")->integer;
    if (port < 0 || port > 65535) {
        option_result_reject(result, "port", "must be 0 to 65535");
    }
    if (option_result_value(result, "silence_timeout")->number < 2) {
        option_result_reject(result, "silence_timeout", "must be 2 or more");
    }
    const struct option_value *fd = option_result_value(result, "fd");
    if (fd->is_set && (fd->integer < 0 || fd->integer > INT32_MAX)) {
        option_result_reject(result, "fd", "must be a descriptor");
    }
}

static enum failure_code open_port(
    const struct option_result *result, int *out_fd, int *out_port, struct failure *failure) {
    const struct option_value *fd = option_result_value(result, "fd");
    if (fd->is_set) {
        *out_fd = (int)fd->integer;
        return tcp_listener_adopt(*out_fd, out_port, failure);
    }
    return tcp_listener_open(option_result_value(result, "host")->text,
        (int)option_result_value(result, "port")->integer, out_fd, out_port, failure);
}

/* The state of the service. */
struct service {
    const struct option_result *options;
    const struct store_limits *limits;
    struct job_token *token;     /* or NULL */
    struct store_server *server; /* NULL until it was created */
};

static enum failure_code start(
    void *context, struct event_loop *loop, const struct log *log, struct failure *failure) {
    struct service *service = context;
    const struct option_result *options = service->options;
    int fd;
    int port;
    const char *token_file = option_result_value(options, "token_file")->text;
    enum failure_code code = token_file == NULL
                                 ? FAILURE_NONE
                                 : job_token_open(NULL, token_file, &service->token, failure);
    if (code == FAILURE_NONE) {
        code = open_port(options, &fd, &port, failure);
    }
    if (code == FAILURE_NONE) {
        struct store_server_settings settings = {
            .limits = service->limits,
            .log = log,
            .key = job_token_key(service->token),
            .silence_timeout =
                duration_from_seconds(option_result_value(options, "silence_timeout")->number),
        };
        code = store_server_new(loop, fd, &settings, &service->server, failure);
    }
    if (code != FAILURE_NONE) {
        return code;
    }
    if (printf("PORT %d\n", port) < 0 || fflush(stdout) != 0) {
        return failure_set(failure, FAILURE_SYSTEM, "cannot print the port");
    }
    return FAILURE_NONE;
}

static void stop(void *context) {
    struct service *service = context;
    store_server_free(service->server);
    job_token_free(service->token);
}

static int serve(const struct option_result *options, const struct store_limits *limits,
    const struct text_list *environment) {
    struct service service = {.options = options, .limits = limits};
    const struct command_service command = {program, start, stop, &service};
    return command_service_run(&command, environment);
}

int store_serve(const struct text_list *arguments, const struct text_list *environment) {
    struct option_result result;
    struct store_limits limits;
    option_parse(&table, program, arguments, environment, &result);
    if (result.outcome == OPTION_OUTCOME_VALUES) {
        check_numbers(&result);
        read_limits(&result, &limits);
    }
    int status = result.outcome == OPTION_OUTCOME_VALUES ? serve(&result, &limits, environment)
                                                         : command_print(&result);
    option_result_clear(&result);
    return status;
}
