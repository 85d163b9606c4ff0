/* SPDX-License-Identifier: BSD-3-Clause */
/* One connection to a store, which several struct muster_store may share: its own loop inside the
 * program, the requests under way, and who waits for them. A request belongs to one user; when that
 * user goes, its requests are called back at once, and their answers are dropped. */
#ifndef MUSTER_LIBRARY_STORE_CONNECTION_H
#define MUSTER_LIBRARY_STORE_CONNECTION_H

#include <stdbool.h>

#include "base/failure.h"
#include "host/loop/event_loop.h"
#include "host/store/store_access.h"
#include "host/store/store_admission.h"

struct store_connection;

/* Told to the first user, unless it has gone; each may be NULL. */
struct store_connection_observer {
    void (*connected)(void *context, const struct failure *failure); /* NULL: there is one now */
    void (*lost)(void *context, const struct failure *failure);
    void *context;
};

/* Begin to connect; exactly one of the two. The callbacks of the settings are this module's. The
 * token is taken, also on failure; it may be NULL. The connection has one user. */
__attribute__((warn_unused_result)) enum failure_code store_connection_over_tcp(
    const struct store_client_settings *settings, struct job_token *token_taken,
    const struct store_connection_observer *observer, const void *user,
    struct store_connection **out_connection, struct failure *failure);
__attribute__((warn_unused_result)) enum failure_code store_connection_over_file(
    const struct file_store_settings *settings, const struct store_connection_observer *observer,
    const void *user, struct store_connection **out_connection, struct failure *failure);

/* One user more. */
struct store_connection *store_connection_share(struct store_connection *connection);

/* The user goes, also from inside a callback. The connection ends with the last one. */
void store_connection_leave(struct store_connection *connection, const void *user);

/* How a request has ended, as store_client_result, with the system's error if there was one. */
typedef void store_connection_done(
    void *context, const struct store_client_result *result, int system_error);

/* As store_access_send, except that `done` and `context` of the call are not used. */
void store_connection_send(struct store_connection *connection, const void *user,
    const struct store_client_call *call, store_connection_done *done, void *context);

struct embedded_loop *store_connection_loop(struct store_connection *connection);

/* These two keep the connection while they run, even if every user goes. */
void store_connection_process(struct store_connection *connection);
/* Until `*is_done`, which one of the user's callbacks sets. That it was set, is then told by
 * store_connection_wake. */
void store_connection_run_until(struct store_connection *connection, const bool *is_done);
void store_connection_wake(struct store_connection *connection);

/* Waits until there is a connection (FAILURE_NONE), or there will be none. */
__attribute__((warn_unused_result)) enum failure_code store_connection_settle(
    struct store_connection *connection, struct failure *failure);

#endif
