/* SPDX-License-Identifier: BSD-3-Clause */
/* A store for commands: connects to a server or opens a file, asks one thing after the other and
 * waits for each answer. Errors are printed on stderr. It stands on muster/store.h alone, as any
 * program does. */
#ifndef MUSTER_MAIN_STORE_STORE_SESSION_H
#define MUSTER_MAIN_STORE_STORE_SESSION_H

#include <stdbool.h>

#include <muster/store.h>

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

/* As store_session_ask, for an answer that is yes (1) or no (0); -1 when there was no answer. */
int store_session_ask_whether(
    struct store_session *session, const struct store_session_question *question);

/* For so many seconds. */
void store_session_pause(struct store_session *session, double seconds);

#endif
