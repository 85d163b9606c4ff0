/* SPDX-License-Identifier: BSD-3-Clause */
/* A store server on a thread of its own with its own event loop. So a slow disk or many log lines
 * in the agent delay no worker, and a storm of requests to the store delays no kill deadline. The
 * two threads share nothing but a queue of messages. No signal is ever delivered to the store
 * thread. */
#ifndef MUSTER_HOST_STORE_STORE_THREAD_H
#define MUSTER_HOST_STORE_STORE_THREAD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/failure.h"
#include "host/loop/event_loop.h"
#include "host/store/store_server.h"

struct store_thread;

/* Starts serving `listening_fd_taken` and the listening sockets of the settings, which are closed
 * when this fails. `loop` is the caller's own:
 * callbacks of this module, the observer's included, run on it. The log's write function is called
 * from the store thread, so it must be thread-safe. FAILURE_SYSTEM when no thread or loop can be
 * created. */
__attribute__((warn_unused_result)) enum failure_code store_thread_start(struct event_loop *loop,
    int listening_fd_taken, const struct store_server_settings *settings,
    struct store_thread **out_thread, struct failure *failure);

/* The port clients connect to. */
int store_thread_port(const struct store_thread *thread);

/* Asks for an empty store on the same port (see store_server_renew; `kept_prefix` is copied, NULL
 * keeps nothing). `done` is called on the caller's loop once the old store is gone. Several
 * requests are answered in their order. */
void store_thread_renew(struct store_thread *thread, const char *kept_prefix,
    void (*done)(void *context), void *context);

/* Begins to serve what stood by (store_server_serve). The seeds are taken: the caller's list is
 * empty then. `done`, unless it is NULL, is called on the caller's loop once clients are served. */
void store_thread_serve(struct store_thread *thread, struct store_seeds *seeds_taken,
    void (*done)(void *context), void *context);

/* Stands by (store_server_stand_by; `answer` is copied). `done`, unless it is NULL, is called on
 * the caller's loop once every connection of a store that was served is closed. What the observer
 * is told before that is still about that store, and includes `gone` of every client of it. */
void store_thread_stand_by(
    struct store_thread *thread, const char *answer, void (*done)(void *context), void *context);

/* Closes the connection that holds the presence key `name` (copied), because its client has
 * stalled. The observer's `gone` follows, unless it was already on its way. */
void store_thread_drop(struct store_thread *thread, const char *name);

/* Puts a value into a queue, in place of all that is in it (store_server_tell); copies both. */
void store_thread_tell(struct store_thread *thread, const char *raw_key, const char *value_or_null);

/* Closes the port and every connection, joins the thread and frees it. Renewals under way and
 * events not yet reported are dropped. Accepts NULL. */
void store_thread_stop(struct store_thread *thread);

#endif
