/* SPDX-License-Identifier: BSD-3-Clause */
/* One node's rendezvous machine with its queue of events. Who performs the machine's effects
 * (rendezvous_endpoint, rendezvous_own_backend) is another's to say; what the machine tells its
 * agent is told here. It decides nothing. */
#ifndef MUSTER_LIBRARY_RENDEZVOUS_MEMBER_H
#define MUSTER_LIBRARY_RENDEZVOUS_MEMBER_H

#include "core/node/node_event.h"
#include "core/rendezvous/rendezvous_machine.h"

struct rendezvous_member;

/* Called while an event is taken; everything is borrowed. Each may post. */
struct rendezvous_member_observer {
    void (*perform)(void *context, const struct rendezvous_effect *effect); /* of the backend */
    void (*joined)(void *context, const struct rendezvous_effect *world);
    void (*round_over)(void *context, const char *reason);
    /* Its part is over, or the record was closed while it goes on: CLOSED, FAILED, SETTLED. */
    void (*ended)(
        void *context, const struct rendezvous_effect *end, enum rendezvous_event_kind cause);
    void (*hosting)(void *context, int port); /* this node hosts the store */
    void (*left)(void *context);              /* lingering is over */
    void *context;
};

/* Never NULL. */
struct rendezvous_member *rendezvous_member_new(const struct rendezvous_machine_settings *settings,
    const struct rendezvous_member_observer *observer);
/* Accepts NULL. Not from inside the observer. */
void rendezvous_member_free(struct rendezvous_member *node);

/* Copies the event, fills in its time, and takes it and all that follow; from inside the observer
 * it is taken later. It is for an agent_mailbox: `context` is the node. */
void rendezvous_member_post(void *context, const struct node_event *event);
void rendezvous_member_tell(struct rendezvous_member *node, struct rendezvous_event event);

/* Asks for the next round. */
void rendezvous_member_join(struct rendezvous_member *node);
/* Closes the record, once there is a connection; `ended` follows. */
void rendezvous_member_close(struct rendezvous_member *node);

/* The record as this node saw it last. */
const struct rendezvous_state *rendezvous_member_state(const struct rendezvous_member *node);

#endif
