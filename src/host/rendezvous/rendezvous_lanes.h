/* SPDX-License-Identifier: BSD-3-Clause */
/* The connections (lanes) of one node to the store that keeps its job's record. One carries
 * requests that the store answers at once, one waits until the record changes, one waits for keys
 * of other nodes; those two may be opened when they are needed. If one connection is lost, all are
 * dropped. Whether the store's machine is silent is judged by the first one alone, over which a
 * sign of life goes every second: TCP sends data again until it is acknowledged, while of its own
 * probes the first ones that are lost count. Where the connection is calm, no sign need go. This is
 * a part of rendezvous_backend and is not used elsewhere. */
#ifndef MUSTER_HOST_RENDEZVOUS_RENDEZVOUS_LANES_H
#define MUSTER_HOST_RENDEZVOUS_RENDEZVOUS_LANES_H

#include <stdbool.h>

#include "base/duration.h"
#include "base/failure.h"
#include "base/text.h"
#include "host/loop/event_loop.h"
#include "host/store/store_access.h"
#include "wire/rendezvous/record_effects.h"

struct rendezvous_lanes {
    struct event_loop *loop;
    char *path; /* path of a FileStore; NULL: a TCPStore at host and port */
    char *host; /* where the lanes are, or are to be opened next */
    int port;
    /* The address, of those of the host, to which the first lane is connected; empty: to none, or
     * it is not known. */
    struct text reached;
    const struct store_key *key; /* or NULL */
    struct duration silence_timeout;
    struct duration answer_timeout;
    /* A node that delegates does not watch the record, and waits for keys in few rounds only, and
     * there may be thousands of such nodes. So each lane but the first is opened when it is used.
     */
    bool delegates;
    struct duration calm_after; /* of the first lane; see store_client_settings */
    struct store_access
        *accesses[RENDEZVOUS_LANE_COUNT]; /* all are NULL while the lanes are dropped */
    bool is_connected[RENDEZVOUS_LANE_COUNT];
    struct event_timer *look;         /* NULL while the lanes are dropped */
    struct instant looked_at;         /* the last look; a sign of life went then */
    bool is_doubted;                  /* nothing was heard since that sign */
    bool is_held;                     /* `held` was called with its socket */
    void (*connected)(void *context); /* all with which a node begins are connected */
    /* The first lane that could not connect, or that ended; the lanes are not dropped yet. */
    void (*unopened)(void *context, const struct failure *failure);
    void (*ended)(void *context, const struct failure *failure);
    /* A sign of life is not acknowledged, or something is heard again. It is known sooner than by
     * looks that are a second apart, so these are half a second apart. NULL: nobody asks. */
    void (*doubted)(void *context, bool is_doubted);
    /* The socket of the first lane, once all are connected; -1: it is shut down, and about to be
     * closed. NULL: nobody asks. */
    void (*held)(void *context, int fd);
    void *context;
};

/* With how many a node begins. */
int rendezvous_lanes_needed(bool delegates);

/* How the lanes are to be opened; see store_client_settings. */
struct rendezvous_lanes_trying {
    struct duration pause; /* before the first attempt */
    struct duration patience;
    struct duration refusal_patience;
};

/* Drops earlier connections first. */
void rendezvous_lanes_open(
    struct rendezvous_lanes *lanes, const struct rendezvous_lanes_trying *trying);
/* Requests under way are answered with FAILURE_CANCELLED before this returns. */
void rendezvous_lanes_drop(struct rendezvous_lanes *lanes);
/* How many are connected. */
size_t rendezvous_lanes_count(const struct rendezvous_lanes *lanes);
bool rendezvous_lanes_are_dropped(const struct rendezvous_lanes *lanes);
/* Does nothing while the lanes are dropped. */
void rendezvous_lanes_send(struct rendezvous_lanes *lanes, enum rendezvous_lane lane,
    const struct store_client_call *call);
/* Cancels what the waiter lane waits for, by a new connection: only so can an old wait's answer be
 * told from a new one's. */
void rendezvous_lanes_renew_waiter(struct rendezvous_lanes *lanes);

#endif
