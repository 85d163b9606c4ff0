/* SPDX-License-Identifier: BSD-3-Clause */
/* Access to a store of either kind: a TCPStore server or a FileStore's file. Requests, answers,
 * deadlines and their order are those of host/store_client.h in both cases. Operations that a file
 * does not support (queues, barriers) are answered with FAILURE_UNSUPPORTED. The two kinds differ
 * only in how they are created. */
#ifndef MUSTER_HOST_STORE_STORE_ACCESS_H
#define MUSTER_HOST_STORE_STORE_ACCESS_H

#include "host/loop/event_loop.h"
#include "host/store/file_store.h"
#include "host/store/store_client.h"

struct store_access;

/* Both copy what the settings point to and never return NULL. Requests may be sent at once. */
struct store_access *store_access_over_tcp(
    struct event_loop *loop, const struct store_client_settings *settings);
struct store_access *store_access_over_file(
    struct event_loop *loop, const struct file_store_settings *settings);

/* Pending requests are called back with FAILURE_CANCELLED before this returns. May be called from
 * inside a callback, but only once. Accepts NULL. */
void store_access_free(struct store_access *access);

/* As store_client_send: everything is copied. `done` is called once, never from inside this
 * call. */
void store_access_send(struct store_access *access, const struct store_client_call *call);

/* As store_client_look. Does nothing for a file, and returns for ever. */
struct duration store_access_look(struct store_access *access);
/* As store_client_silence; a file is never silent. */
struct duration store_access_silence(const struct store_access *access);

/* As store_client_descriptor; -1 for a file. */
int store_access_descriptor(const struct store_access *access);

/* As store_client_write_server. Nothing for a file. */
void store_access_write_server(const struct store_access *access, struct text *out);
/* Appends the address of this end of the connection, where the other is another machine's. */
void store_access_write_own(const struct store_access *access, struct text *out);
/* As store_client_write_address. Nothing for a file. */
void store_access_write_address(const struct store_access *access, struct text *out);
/* As store_client_write_obstacle. Nothing for a file. */
void store_access_write_obstacle(const struct store_access *access, struct text *out);

#endif
