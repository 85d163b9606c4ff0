/* SPDX-License-Identifier: BSD-3-Clause */
/* A store for commands: connects or opens a file, asks one thing after the other and waits for each
 * answer. What goes wrong is said on stderr. */
#ifndef MUSTER_MAIN_STORE_SESSION_H
#define MUSTER_MAIN_STORE_SESSION_H

#include <stdbool.h>

#include "base/duration.h"
#include "core/store_request.h"

struct store_session;

/* Where a store is: in a file, or at a server. */
struct store_place {
    const char *path; /* NULL for a server */
    const char *host;
    int port;
    struct duration silence_timeout; /* see host/tcp_silence */
};

/* `program` is how messages call the command; it and the place's texts outlive the session.
 * `timeout` is for the connection and for each answer. */
struct store_session *store_session_new(
    const char *program, const struct store_place *place, struct duration timeout);
/* NULL is fine. */
void store_session_free(struct store_session *session);

/* How to ask. */
struct store_session_question {
    struct store_request request;
    bool is_raw;            /* keys as they are, without a '/' put in front */
    bool waits_first;       /* for the keys to exist */
    bool has_no_time_limit; /* else the session's timeout */
    /* Looks at the answer, which is borrowed; may be NULL. */
    void (*take)(void *context, const struct store_reply *reply);
    void *context;
};

/* True when the answer has come (for a request without one: when the store has seen it). False when
 * not, and then the reason has been printed. */
bool store_session_ask(
    struct store_session *session, const struct store_session_question *question);

/* As store_session_ask, for a byte; -1 when there was no answer. */
int store_session_ask_byte(
    struct store_session *session, const struct store_session_question *question);

void store_session_pause(struct store_session *session, struct duration length);

#endif
