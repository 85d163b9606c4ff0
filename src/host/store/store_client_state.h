/* SPDX-License-Identifier: BSD-3-Clause */
/* A store_client, as its parts share it: store_client has the calls, store_client_dialling
 * connects. No other module may read or write it. */
#ifndef MUSTER_HOST_STORE_STORE_CLIENT_STATE_H
#define MUSTER_HOST_STORE_STORE_CLIENT_STATE_H

#include <stdbool.h>

#include "base/backoff.h"
#include "host/store/store_addresses.h"
#include "host/store/store_call.h"
#include "host/store/store_client.h"
#include "host/store/store_link.h"

enum store_client_phase {
    STORE_CLIENT_PAUSING,    /* waits for the next attempt */
    STORE_CLIENT_CONNECTING, /* the link exists, its handshake is not answered yet */
    STORE_CLIENT_READY,
    STORE_CLIENT_OVER, /* `end` holds the reason */
};

struct store_client {
    struct event_loop *loop;
    struct store_client_settings settings;
    enum store_client_phase phase;
    struct store_link *link;

    struct store_addresses addresses;
    struct backoff backoff;
    struct instant connect_deadline;
    uint64_t vain_attempts; /* in a row that were refused, or had no way to go */
    bool is_refused;        /* since the time below nothing but refusals has come */
    struct instant refused_since;
    struct failure end; /* why there is no connection */

    struct store_call_queue queue; /* calls that have not begun */
    struct store_call *active;     /* the call that the link works on */
    struct store_call *resting;    /* the QUEUE_POP that is at the server while nothing else is */
    struct event_timer *timer;
    struct instant next_attempt; /* PAUSING: when the next attempt begins; CONNECTING: when the
                                    attempt is given up */
    struct instant attempt_began;
    int busy; /* callbacks under way; the client must not be freed before they end */
    bool is_freed;
};

/* What a link of the client calls. */
extern const struct store_link_owner store_client_link_owner;

/* The connection has ended, or no attempt will follow: every call fails, and the user is told. */
void store_client_give_up(struct store_client *client, const struct failure *failure);

#endif
