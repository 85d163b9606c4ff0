/* SPDX-License-Identifier: BSD-3-Clause */
/* A store for commands: connects to a server or opens a file, asks one thing after the other and
 * waits for each answer. Errors are printed on stderr. */
#ifndef MUSTER_MAIN_STORE_STORE_SESSION_H
#define MUSTER_MAIN_STORE_STORE_SESSION_H

#include <stdbool.h>

#include "base/duration.h"
#include "core/store/store_request.h"

struct store_session;

/* Where a store is: a file or a server. */
struct store_place {
    const char *path; /* NULL for a server */
    const char *host;
    int port;
    const char *token_file;          /* NULL: the store wants no token */
    struct duration silence_timeout; /* see host/tcp_silence */
};

/* `program` is how messages call the command. It and the strings of the place must outlive the
 * session. `timeout` applies to connecting and to each answer. */
struct store_session *store_session_new(
    const char *program, const struct store_place *place, struct duration timeout);
/* Accepts NULL. */
void store_session_free(struct store_session *session);

/* One question and how to ask it. */
struct store_session_question {
    struct store_request request;
    bool is_raw;            /* send keys unchanged, without a '/' in front */
    bool waits_first;       /* wait until the keys exist */
    bool has_no_time_limit; /* otherwise the session's timeout applies */
    /* Gets the answer, which is borrowed; may be NULL. */
    void (*take)(void *context, const struct store_reply *reply);
    void *context;
};

/* Returns true when the answer has come (for a request without a reply: when the store has
 * processed it). On failure it prints the reason and returns false. */
bool store_session_ask(
    struct store_session *session, const struct store_session_question *question);

/* As store_session_ask, for an answer of one byte; -1 when there was no answer. */
int store_session_ask_byte(
    struct store_session *session, const struct store_session_question *question);

void store_session_pause(struct store_session *session, struct duration length);

#endif
