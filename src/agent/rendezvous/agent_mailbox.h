/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the shells put what they learn: on the queue of the node machine. */
#ifndef MUSTER_AGENT_RENDEZVOUS_AGENT_MAILBOX_H
#define MUSTER_AGENT_RENDEZVOUS_AGENT_MAILBOX_H

#include "core/node/node_event.h"

struct agent_mailbox {
    /* Copies all that the event points to, and fills in the time. May be called at any time. */
    void (*post)(void *context, const struct node_event *event);
    void *context;
};

static inline void agent_mailbox_post(
    const struct agent_mailbox *mailbox, const struct node_event *event) {
    mailbox->post(mailbox->context, event);
}

#endif
