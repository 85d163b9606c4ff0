/* SPDX-License-Identifier: BSD-3-Clause */
/* How a host of the job's store leaves, as core/succession/succession_handover wants it: the
 * successor is told, then the others; the store stays until they have left it; and nothing that is
 * being appended to the register is left behind. */
#ifndef MUSTER_AGENT_RENDEZVOUS_AGENT_HANDOVER_H
#define MUSTER_AGENT_RENDEZVOUS_AGENT_HANDOVER_H

#include <stdbool.h>

#include "agent/rendezvous/agent_mailbox.h"
#include "base/duration.h"
#include "core/rendezvous/rendezvous_state.h"
#include "host/loop/event_loop.h"

struct agent_handover;
struct agent_hosted_store;
struct agent_register;

/* The store and the register are borrowed. */
struct agent_handover *agent_handover_new(struct event_loop *loop, struct agent_mailbox mailbox,
    struct agent_hosted_store *store, struct agent_register *reg);
/* NULL is fine. */
void agent_handover_free(struct agent_handover *handover);

/* This node leaves the store that it serves. Calls `done`, perhaps at once, when nothing is being
 * appended, and no other node is connected or `patience` is over. Without any patience the store is
 * handed over: LEAVE is told to the machine, and DISMISS is awaited. */
void agent_handover_begin(struct agent_handover *handover, struct duration patience,
    void (*done)(void *context), void *context);
/* A node has left the store. */
void agent_handover_note_gone(
    struct agent_handover *handover, const struct node_identity *identity);
/* Nothing is being appended any more. */
void agent_handover_go_on(struct agent_handover *handover);

/* NAME and DISMISS. */
void agent_handover_name(struct agent_handover *handover, const struct node_identity *successor);
void agent_handover_dismiss(struct agent_handover *handover, bool has_successor);

#endif
