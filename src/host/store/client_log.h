/* SPDX-License-Identifier: BSD-3-Clause */
/* What a server says about its clients in the log: one line that names the client. Lines are left
 * out when there are too many, since a hostile client can cause as many as it likes. */
#ifndef MUSTER_HOST_STORE_CLIENT_LOG_H
#define MUSTER_HOST_STORE_CLIENT_LOG_H

#include "base/log.h"
#include "host/loop/event_loop.h"
#include "host/network/tcp_address.h"

struct client_log {
    struct event_loop *loop;
    const struct log *log;
    struct log_throttle throttle;
    struct log_throttle full; /* of its own: other lines must not keep these out */
};

void client_log_init(struct client_log *client_log, struct event_loop *loop, const struct log *log);

/* A warning. */
void client_log_say(
    struct client_log *client_log, const union tcp_address *address, const char *what);

/* An error: a request of the client was refused because the store is full. The line ends with the
 * option that gives a store more memory. */
void client_log_say_full(
    struct client_log *client_log, const union tcp_address *address, const char *what);

#endif
