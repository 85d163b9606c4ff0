/* SPDX-License-Identifier: BSD-3-Clause */
/* A store to ask, wherever it is: behind a TCPStore server or in a FileStore's file. Requests,
 * answers, deadlines and the order of things are those of host/store_client.h in both cases; what a
 * file cannot do (queues, barriers) is answered with FAILURE_UNSUPPORTED. Only the two ways to make
 * one differ. */
#ifndef MUSTER_HOST_STORE_ACCESS_H
#define MUSTER_HOST_STORE_ACCESS_H

#include "host/event_loop.h"
#include "host/file_store.h"
#include "host/store_client.h"

struct store_access;

/* Both copy what the settings point to and never return NULL. Requests may be sent at once. */
struct store_access *store_access_over_tcp(
    struct event_loop *loop, const struct store_client_settings *settings);
struct store_access *store_access_over_file(
    struct event_loop *loop, const struct file_store_settings *settings);

/* Pending requests are called back with FAILURE_CANCELLED before this returns. Also from inside a
 * callback, but only once. NULL is fine. */
void store_access_free(struct store_access *access);

/* As store_client_send: everything is copied, `done` is called once and never from inside. */
void store_access_send(struct store_access *access, const struct store_client_call *call);

#endif
