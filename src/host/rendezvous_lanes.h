/* SPDX-License-Identifier: BSD-3-Clause */
/* The connections of one node to the store that keeps its job's record: one for requests answered
 * at once, one that waits for the record to change, one that waits for others' keys. They stand and
 * fall together. A part of rendezvous_backend; not for others. */
#ifndef MUSTER_HOST_RENDEZVOUS_LANES_H
#define MUSTER_HOST_RENDEZVOUS_LANES_H

#include <stdbool.h>

#include "base/duration.h"
#include "base/failure.h"
#include "host/event_loop.h"
#include "host/store_access.h"

enum rendezvous_lane {
    RENDEZVOUS_LANE_ASKER,
    RENDEZVOUS_LANE_WATCHER,
    RENDEZVOUS_LANE_WAITER,
    RENDEZVOUS_LANE_COUNT,
};

struct rendezvous_lanes {
    struct event_loop *loop;
    char *path; /* of a FileStore; NULL: a TCPStore at … */
    char *host;
    int port;
    struct duration silence_timeout;
    struct duration answer_timeout;
    struct store_access *accesses[RENDEZVOUS_LANE_COUNT]; /* all NULL: dropped */
    int connected_count;
    void (*connected)(void *context);                            /* all three */
    void (*ended)(void *context, const struct failure *failure); /* the first that did, or could
                                                                    not be made; not dropped yet */
    void *context;
};

/* Tries for so long. Drops what was there before. */
void rendezvous_lanes_open(struct rendezvous_lanes *lanes, struct duration patience);
/* Requests under way are answered with FAILURE_CANCELLED before this returns. */
void rendezvous_lanes_drop(struct rendezvous_lanes *lanes);
bool rendezvous_lanes_are_dropped(const struct rendezvous_lanes *lanes);
/* Does nothing when they are dropped. */
void rendezvous_lanes_send(struct rendezvous_lanes *lanes, enum rendezvous_lane lane,
    const struct store_client_call *call);
/* Sends this to the asker, its keys as they are, to be answered in `answer_timeout`. */
void rendezvous_lanes_ask(struct rendezvous_lanes *lanes, const struct store_request *request,
    void (*done)(void *context, const struct store_client_result *result), void *context);
/* Calls off what the waiter waits for: only a connection of its own tells an old wait's answer from
 * a new one's. */
void rendezvous_lanes_renew_waiter(struct rendezvous_lanes *lanes);

#endif
