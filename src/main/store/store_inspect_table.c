/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/store/store_inspect.h"
#include "main/store/store_operations.h"

/* The options that every command has. */
#define COMMON_OPTIONS                                                                             \
    OPTION_DEFINITION_HELP,                                                                        \
        {.destination = "host",                                                                    \
            .names = {"--host"},                                                                   \
            .help = "Where the store is: a name, IPv4 or IPv6. Default: MASTER_ADDR; without any " \
                    "place the one job of this user on this machine; else localhost."},            \
        {.destination = "port",                                                                    \
            .names = {"--port"},                                                                   \
            .kind = OPTION_INTEGER,                                                                \
            .help = "Its port. Default: MASTER_PORT, else 29500."},                                \
        {.destination = "file",                                                                    \
            .names = {"--file"},                                                                   \
            .help = "Instead of host and port: the file of a FileStore. It must exist, and has "   \
                    "neither queues nor barriers."},                                               \
        {.destination = "timeout",                                                                 \
            .names = {"--timeout"},                                                                \
            .kind = OPTION_FLOAT,                                                                  \
            .default_text = "10",                                                                  \
            .help = "Seconds to wait for the store, and for each answer. Default: 10."},           \
        {.destination = "silence_timeout",                                                         \
            .names = {"--silence-timeout"},                                                        \
            .kind = OPTION_FLOAT,                                                                  \
            .default_text = "180",                                                                 \
            .help = "Seconds the store's machine may not answer at all, whatever is waited for; "  \
                    "2 or more. Default: 180."},                                                   \
        {.destination = "token_file",                                                              \
            .names = {"--token-file"},                                                             \
            .help = "File with the token that the store asks for, which only this user may read "  \
                    "(mode 0600)."},                                                               \
    {                                                                                              \
        .destination = "raw", .names = {"--raw"}, .kind = OPTION_FLAG,                             \
        .help = "Take keys as they are on the wire, without a '/' put in front."                   \
    }

#define KEY_ARGUMENT                                                                               \
    { .destination = "key", .help = "The key." }

#define KEYS_ARGUMENT                                                                              \
    { .destination = "keys", .arity = OPTION_ARITY_SOME, .help = "The keys." }

#define VALUE_ARGUMENT                                                                             \
    { .destination = "value", .help = "The value; - reads it from stdin." }

static const struct option_definition get_options[] = {
    COMMON_OPTIONS,
    KEYS_ARGUMENT,
};

static const struct option_definition set_options[] = {
    COMMON_OPTIONS,
    {.destination = "pairs",
        .arity = OPTION_ARITY_SOME,
        .help = "A key and its value; a single value may be - for stdin. More pairs may follow."},
};

static const struct option_definition append_options[] = {
    COMMON_OPTIONS,
    KEY_ARGUMENT,
    VALUE_ARGUMENT,
};

static const struct option_definition add_options[] = {
    COMMON_OPTIONS,
    KEY_ARGUMENT,
    {.destination = "number",
        .kind = OPTION_INTEGER,
        .arity = OPTION_ARITY_OPTIONAL,
        .default_text = "1",
        .help = "What to add; may be negative. Default: 1."},
};

static const struct option_definition compare_set_options[] = {
    COMMON_OPTIONS,
    KEY_ARGUMENT,
    {.destination = "expected", .help = "What the value should be now; empty: none."},
    {.destination = "desired", .help = "What it is to become."},
};

static const struct option_definition check_options[] = {
    COMMON_OPTIONS,
    KEYS_ARGUMENT,
};

static const struct option_definition wait_options[] = {
    COMMON_OPTIONS,
    KEYS_ARGUMENT,
};

static const struct option_definition delete_options[] = {
    COMMON_OPTIONS,
    KEY_ARGUMENT,
};

static const struct option_definition keys_options[] = {
    COMMON_OPTIONS,
    {.destination = "prefix",
        .arity = OPTION_ARITY_OPTIONAL,
        .help = "Show only keys that start with this."},
};

static const struct option_definition count_options[] = {
    COMMON_OPTIONS,
};

static const struct option_definition watch_options[] = {
    COMMON_OPTIONS,
    KEY_ARGUMENT,
    {.destination = "interval",
        .names = {"--interval"},
        .kind = OPTION_FLOAT,
        .default_text = "0.5",
        .help = "Seconds between two looks. Default: 0.5."},
    {.destination = "changes",
        .names = {"--changes"},
        .kind = OPTION_INTEGER,
        .help = "Exit after so many lines."},
};

static const struct option_definition push_options[] = {
    COMMON_OPTIONS,
    KEY_ARGUMENT,
    VALUE_ARGUMENT,
};

static const struct option_definition pop_options[] = {
    COMMON_OPTIONS,
    KEY_ARGUMENT,
    {.destination = "wait",
        .names = {"--wait"},
        .kind = OPTION_FLAG,
        .help = "Wait until there is something, as PyTorch's queue_pop does."},
};

static const struct option_definition len_options[] = {
    COMMON_OPTIONS,
    KEY_ARGUMENT,
};

static const struct option_definition barrier_options[] = {
    COMMON_OPTIONS,
    KEY_ARGUMENT,
    {.destination = "number", .kind = OPTION_INTEGER, .help = "How many have to come."},
};

static const struct option_definition ping_options[] = {
    COMMON_OPTIONS,
};

/* Completes a table that has these definitions. */
#define TABLE(definitions_of, text)                                                                \
    {                                                                                              \
        .description = (text), .definitions = (definitions_of),                                    \
        .definition_count = sizeof(definitions_of) / sizeof((definitions_of)[0])                   \
    }

const struct store_inspect_command store_inspect_commands[] = {
    {
        .name = "get",
        .synopsis = "get KEY...",
        .summary = "print a value",
        .table = TABLE(get_options,
            "Print the value of a key exactly as it is stored, without a newline "
            "(on a terminal with '?' for control characters). "
            "With several keys each value is one line, with bytes that are not "
            "printable ASCII written as \\xNN. A key that does not exist is a "
            "failure (status 1); `wait` waits for one."),
        .run = store_run_get,
    },
    {
        .name = "set",
        .synopsis = "set KEY VALUE...",
        .summary = "store a value",
        .table = TABLE(set_options,
            "Store a value under a key. With several pairs of key and value all are "
            "stored in one request."),
        .run = store_run_set,
    },
    {
        .name = "append",
        .synopsis = "append KEY VALUE",
        .summary = "add to the end of a value",
        .table =
            TABLE(append_options, "Add to the end of a value; a key that does not exist is made."),
        .run = store_run_append,
    },
    {
        .name = "add",
        .synopsis = "add KEY [NUMBER]",
        .summary = "count up and print the counter",
        .table = TABLE(add_options,
            "Add a number to a counter and print what it is then. A key that does "
            "not exist counts from 0."),
        .run = store_run_add,
    },
    {
        .name = "compare-set",
        .synopsis = "compare-set KEY EXPECTED DESIRED",
        .summary = "replace a value if it is the expected one",
        .table = TABLE(compare_set_options,
            "Store DESIRED if the value is EXPECTED, or if there is none and "
            "EXPECTED is empty. Prints the value the store answers with; the status "
            "is 0 if that is DESIRED. Of a key that does not exist the store "
            "answers with EXPECTED, as PyTorch does."),
        .run = store_run_compare_set,
    },
    {
        .name = "check",
        .synopsis = "check KEY...",
        .summary = "status 0 if all keys exist",
        .table = TABLE(check_options, "Exit with 0 if all keys exist, else with 1."),
        .run = store_run_check,
    },
    {
        .name = "wait",
        .synopsis = "wait KEY...",
        .summary = "wait until all keys exist",
        .table =
            TABLE(wait_options, "Wait until all keys exist; 1 when the timeout passes before."),
        .run = store_run_wait,
    },
    {
        .name = "delete",
        .synopsis = "delete KEY",
        .summary = "delete a key",
        .table = TABLE(delete_options, "Delete a key; 1 if it does not exist."),
        .run = store_run_delete,
    },
    {
        .name = "keys",
        .synopsis = "keys [PREFIX]",
        .summary = "list the keys, one per line",
        .table = TABLE(keys_options,
            "List the keys, one per line; bytes that are not printable ASCII are "
            "written as \\xNN. --raw also shows those not made by users."),
        .run = store_run_keys,
    },
    {
        .name = "count",
        .synopsis = "count",
        .summary = "print the number of keys",
        .table =
            TABLE(count_options, "Print the number of keys, those not made by users included."),
        .run = store_run_count,
    },
    {
        .name = "watch",
        .synopsis = "watch KEY",
        .summary = "print a value whenever it changes",
        .table = TABLE(watch_options,
            "Wait for a key to exist and print its value, then again whenever it "
            "has changed, one line each. A store does not report changes, so the "
            "key is read every --interval; a value that is replaced twice in "
            "between is seen once. Runs until interrupted."),
        .run = store_run_watch,
    },
    {
        .name = "push",
        .synopsis = "push KEY VALUE",
        .summary = "add to a queue",
        .table = TABLE(push_options, "Add a value to the end of a queue."),
        .run = store_run_push,
    },
    {
        .name = "pop",
        .synopsis = "pop KEY",
        .summary = "take from a queue and print it",
        .table = TABLE(pop_options,
            "Take the first value of a queue and print it exactly as it is; 1 if "
            "the queue is empty."),
        .run = store_run_pop,
    },
    {
        .name = "len",
        .synopsis = "len KEY",
        .summary = "print the length of a queue",
        .table = TABLE(len_options, "Print the length of a queue."),
        .run = store_run_len,
    },
    {
        .name = "barrier",
        .synopsis = "barrier KEY NUMBER",
        .summary = "wait until so many have come",
        .table = TABLE(barrier_options,
            "Wait until NUMBER clients have come to this barrier. It counts up once "
            "and for all: a barrier is used once."),
        .run = store_run_barrier,
    },
    {
        .name = "ping",
        .synopsis = "ping",
        .summary = "status 0 if the store answers",
        .table = TABLE(ping_options, "Exit with 0 if the store answers."),
        .run = store_run_ping,
    },
};

const size_t store_inspect_command_count =
    sizeof store_inspect_commands / sizeof store_inspect_commands[0];
