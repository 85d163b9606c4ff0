/* SPDX-License-Identifier: BSD-3-Clause */
/* One connection to a TCPStore server, for as long as it lasts: connects to one address, shakes
 * hands, then carries bytes there and decoded replies back, one expected reply at a time. Trying
 * again, deadlines and the order of requests are host/store_client's. */
#ifndef MUSTER_HOST_STORE_LINK_H
#define MUSTER_HOST_STORE_LINK_H

#include <stdbool.h>

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
    /* The connection is over, or never came to be. */
    void (*ended)(void *context, const struct failure *failure);
};

/* Starts to connect. `owner` outlives the link. FAILURE_SYSTEM when that fails at once, and then no
 * callback follows. */
__attribute__((warn_unused_result)) enum failure_code store_link_open(struct event_loop *loop,
    const union tcp_address *address, const struct store_reply_limits *limits,
    const struct store_link_owner *owner, void *context, struct store_link **out_link,
    struct failure *failure);

/* Closes without a callback. NULL is fine. */
void store_link_free(struct store_link *link);

/* True when all of it has gone to the kernel; else `drained` (or `ended`) follows. */
bool store_link_send(struct store_link *link, struct slice request);

/* The next reply answers this request (keys are not looked at, but counted). Until the first
 * call, and for a request without reply, anything the server says is a breach of the protocol. */
void store_link_expect(struct store_link *link, const struct store_request *request);

#endif
