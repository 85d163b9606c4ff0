/* SPDX-License-Identifier: BSD-3-Clause */
/* What the performer of a rendezvous_record_store has to do: send requests over the node's three
 * connections to the store (the lanes) and pass on events. The list owns everything it points
 * to. */
#ifndef MUSTER_WIRE_RENDEZVOUS_RECORD_EFFECTS_H
#define MUSTER_WIRE_RENDEZVOUS_RECORD_EFFECTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/duration.h"
#include "core/rendezvous/rendezvous_machine.h"
#include "wire/store/owned_request.h"

/* Each lane carries one request at a time, in order. If one lane is lost, all are dropped. A node
 * that delegates begins with the first lane alone; the others are opened when they are needed. */
enum rendezvous_lane {
    RENDEZVOUS_LANE_ASKER,   /* requests that the store answers at once; it carries this node's
                                presence, and its QUEUE_POP rests there */
    RENDEZVOUS_LANE_WATCHER, /* waits until the record changes */
    RENDEZVOUS_LANE_WAITER,  /* waits for keys of other nodes */
    RENDEZVOUS_LANE_COUNT,
};

enum record_effect_kind {
    RECORD_EFFECT_OPEN, /* open all lanes; try until the deadline, or until only refusals came for
                           `refusal_patience` */
    RECORD_EFFECT_DROP, /* drop all lanes and the requests under way on them */
    RECORD_EFFECT_RENEW_WAITER, /* drop this one lane and its requests, and open it again at once */
    RECORD_EFFECT_SEND,
    RECORD_EFFECT_TELL,
};

struct record_sending {
    enum rendezvous_lane lane;
    uint64_t tag;            /* identifies the reply; never the same twice */
    struct duration timeout; /* from now to the reply; DURATION_FOREVER for a wait */
    bool rests; /* it holds up no other request of its lane: host/store/store_client.h */
    struct owned_request own; /* send own.request; its keys are already complete */
};

struct record_effect {
    enum record_effect_kind kind;
    struct duration refusal_patience; /* OPEN: as in CONNECT of rendezvous_machine.h */
    struct duration pause;            /* OPEN: before the first attempt */
    union {
        struct instant deadline;    /* OPEN */
        struct record_sending send; /* SEND */
        /* TELL: CONNECTED, CONNECTION_LOST, RECORD, WRITTEN, CHANGED, FINISHED_COUNT, ROLL_ANSWERED
         * or BROKEN, for the node's rendezvous_machine. The performer fills in the event's times
         * and connected.is_host. */
        struct rendezvous_event told;
    };
    /* The memory that `told` points to. */
    char *reason;
    struct rendezvous_state *state;
};

/* A zeroed struct is valid and empty. The effects stay valid until the list is cleared, but adding
 * an effect may move the earlier ones. */
struct record_effects {
    struct record_effect *items;
    size_t count;
    size_t capacity;
};

void record_effects_clear(struct record_effects *effects);

/* Returns a zeroed effect with its kind set. The pointer is valid until the next effect is
 * added. */
struct record_effect *record_effects_add(
    struct record_effects *effects, enum record_effect_kind kind);
/* Adds a TELL effect and copies what the event points to. */
void record_effects_tell(struct record_effects *effects, const struct rendezvous_event *event);

#endif
