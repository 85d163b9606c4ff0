/* SPDX-License-Identifier: BSD-3-Clause */
/* A store for commands: connects to a server or opens a file, asks one thing after the other and
 * waits for each answer. Errors are printed on stderr. It stands on muster/store.h alone, as any
 * program does. */
#ifndef MUSTER_MAIN_STORE_STORE_SESSION_H
#define MUSTER_MAIN_STORE_STORE_SESSION_H

#include <muster/store.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "options/argparse/option_result.h"
#include "options/argparse/option_table.h"

struct store_session;

/* Where a store is: a file or a server. */
struct store_place {
    const char *path; /* NULL for a server */
    const char *host;
    int port;
    const char *token_file; /* NULL: the store wants no token */
    double silence_timeout; /* in seconds, see host/tcp_stream */
};

/* `program` is how messages call the command. It and the strings of the place must outlive the
 * session. `timeout` applies to connecting and to each answer, in seconds. */
struct store_session *store_session_new(
    const char *program, const struct store_place *place, double timeout);
/* Accepts NULL. */
void store_session_free(struct store_session *session);

/* What it asks; belongs to the session. */
struct muster_store *store_session_store(const struct store_session *session);

/* One question. */
struct store_session_question {
    /* Its size need not be set. */
    struct muster_store_request request;
    bool has_no_time_limit; /* otherwise the session's timeout applies */
    /* Gets the answer, which is borrowed; may be NULL. */
    void (*take)(void *context, const struct muster_store_result *result);
    void *context;
};

/* Returns true when the answer has come (for a request without a reply: when the store has
 * processed it). On failure it prints the reason and returns false. */
bool store_session_ask(
    struct store_session *session, const struct store_session_question *question);

/* `muster store get`, `set` and others: one operation on a running store, from a shell. Each
 * command is a line in a table: its options, and a function that asks the store and prints the
 * answer. */

struct store_session;

struct store_inspect_command {
    const char *name;
    const char *synopsis; /* name and arguments */
    const char *summary;
    struct option_table table;
    /* Returns the exit status. */
    int (*run)(struct store_session *session, const struct option_result *options);
};

extern const struct store_inspect_command store_inspect_commands[];
extern const size_t store_inspect_command_count;

int store_inspect(const struct store_inspect_command *command, const struct text_list *arguments,
    const struct text_list *environment);

#endif
