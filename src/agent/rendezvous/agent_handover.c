/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/rendezvous/agent_handover.h"

#include <stdlib.h>

#include "agent/rendezvous/agent_hosted_store.h"
#include "agent/rendezvous/agent_register.h"
#include "base/memory.h"

/* How long a host that has a successor waits until the others have left its store. */
#define DISMISSAL_MILLISECONDS 250

struct agent_handover {
    struct event_loop *loop;
    struct agent_mailbox mailbox;
    struct agent_hosted_store *store;
    struct agent_register *reg;
    struct event_timer *timer;
    bool is_begun;               /* the machine wants to know who leaves */
    bool has_lingered;           /* nothing is left to wait for but the register */
    void (*done)(void *context); /* NULL: nobody waits */
    void *context;
};

static void post(struct agent_handover *handover, struct succession_event event) {
    agent_mailbox_post(
        &handover->mailbox, &(struct node_event){.part = NODE_SUCCESSION, .succession = event});
}

static void post_gone(struct agent_handover *handover, const struct node_identity *identity) {
    post(
        handover, (struct succession_event){.kind = SUCCESSION_EVENT_NODE_GONE, .gone = *identity});
}

/* What this node has seen last may have to become an entry before it goes: that the job is over, or
 * that it goes on without this node. */
static void go_on(void *context) {
    struct agent_handover *handover = context;
    void (*done)(void *context) = handover->done;
    if (done != NULL && handover->has_lingered && !agent_register_is_busy(handover->reg)) {
        handover->done = NULL;
        done(handover->context);
    }
}

void agent_handover_go_on(struct agent_handover *handover) {
    go_on(handover);
}

/* The machine has yet to be told of what was seen: it is in the queue. */
static void lingered(void *context) {
    struct agent_handover *handover = context;
    handover->has_lingered = true;
    event_timer_set(handover->timer, event_loop_now(handover->loop));
}

void agent_handover_begin(struct agent_handover *handover, struct duration patience,
    void (*done)(void *context), void *context) {
    handover->done = done;
    handover->context = context;
    if (patience.nanoseconds > 0) {
        agent_hosted_store_linger(handover->store, 0, patience, lingered, handover);
    } else {
        handover->is_begun = true;
        post(handover, (struct succession_event){.kind = SUCCESSION_EVENT_LEAVE});
    }
}

void agent_handover_note_gone(
    struct agent_handover *handover, const struct node_identity *identity) {
    if (handover->is_begun) {
        post_gone(handover, identity);
    }
}

/* A node that is gone already is no successor. */
void agent_handover_name(struct agent_handover *handover, const struct node_identity *successor) {
    if (!agent_hosted_store_name(handover->store, successor)) {
        post_gone(handover, successor);
    }
}

void agent_handover_dismiss(struct agent_handover *handover, bool has_successor) {
    handover->is_begun = false;
    if (has_successor && agent_hosted_store_is_serving(handover->store)) {
        agent_hosted_store_tell_moved(handover->store);
        agent_hosted_store_linger(handover->store, 0,
            duration_from_milliseconds(DISMISSAL_MILLISECONDS), lingered, handover);
    } else {
        lingered(handover);
    }
}

/* Life. */

struct agent_handover *agent_handover_new(struct event_loop *loop, struct agent_mailbox mailbox,
    struct agent_hosted_store *store, struct agent_register *reg) {
    struct agent_handover initial = {.loop = loop, .mailbox = mailbox, .store = store, .reg = reg};
    struct agent_handover *handover = memory_duplicate(&initial, sizeof initial);
    handover->timer = event_timer_new(loop, go_on, handover);
    return handover;
}

void agent_handover_free(struct agent_handover *handover) {
    if (handover != NULL) {
        event_timer_free(handover->timer);
        free(handover);
    }
}
