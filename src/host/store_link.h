/* SPDX-License-Identifier: BSD-3-Clause */
/* One connection to a TCPStore server, for as long as it lasts: connects to one address, shakes
 * hands, then carries bytes there and decoded replies back, one expected reply at a time. Trying
 * again, deadlines and the order of requests are host/store_client's. */
#ifndef MUSTER_HOST_STORE_LINK_H
#define MUSTER_HOST_STORE_LINK_H

#include <stdbool.h>

#include "base/duration.h"
#include "base/failure.h"
#include "core/store_request.h"
#include "host/event_loop.h"
#include "host/tcp_address.h"
#include "wire/store_reply_codec.h"

struct store_link;

/* What the owner is told. Each callback may free the link. */
struct store_link_owner {
    /* The server answered the handshake. */
    void (*ready)(void *context);
    /* The expected reply; borrowed for the callback. The same kind is expected again until
     * store_link_expect. */
    void (*replied)(void *context, const struct store_reply *reply);
    /* Everything sent has gone to the kernel (only after store_link_send left something over). */
    void (*drained)(void *context);
    /* The connection is over, or never came to be. Of one that stood the message names the server:
     * FAILURE_TIMEOUT when its machine was silent, FAILURE_DISCONNECTED when its process ended it,
     * FAILURE_PROTOCOL or FAILURE_LIMIT when it broke the protocol. */
    void (*ended)(void *context, const struct failure *failure);
};

/* Where to, and how. */
struct store_link_settings {
    const union tcp_address *address;        /* copied */
    const struct store_reply_limits *limits; /* copied */
    struct duration silence_timeout;         /* see host/tcp_silence; more than zero */
    const struct store_link_owner *owner;    /* outlives the link */
    void *context;                           /* the owner's */
};

/* Starts to connect. FAILURE_SYSTEM when that fails at once, and then no callback follows. */
__attribute__((warn_unused_result)) enum failure_code store_link_open(struct event_loop *loop,
    const struct store_link_settings *settings, struct store_link **out_link,
    struct failure *failure);

/* Closes without a callback. NULL is fine. */
void store_link_free(struct store_link *link);

/* Whether the connection stands, though the handshake may not be answered yet. */
bool store_link_is_connected(const struct store_link *link);

/* True when all of it has gone to the kernel; else `drained` (or `ended`) follows. */
bool store_link_send(struct store_link *link, struct slice request);

/* The next reply answers this request (keys are not looked at, but counted). Until the first
 * call, and for a request without reply, anything the server says is a breach of the protocol. */
void store_link_expect(struct store_link *link, const struct store_request *request);

#endif
