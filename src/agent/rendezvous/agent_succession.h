/* SPDX-License-Identifier: BSD-3-Clause */
/* What core/succession/succession_machine wants, carried out: entries of the job's register are
 * read, written and renewed, the store of this node stands by and is served, and the host of the
 * term is dialled. What becomes of it goes to the node's queue. It keeps what the machine does not
 * know: where the host of the entry read last listens. Nothing is decided here. */
#ifndef MUSTER_AGENT_RENDEZVOUS_AGENT_SUCCESSION_H
#define MUSTER_AGENT_RENDEZVOUS_AGENT_SUCCESSION_H

#include <stdbool.h>

#include "agent/rendezvous/agent_rendezvous.h"
#include "agent/rendezvous/agent_store_host.h"
#include "base/duration.h"
#include "core/rendezvous/rendezvous_state.h"
#include "host/loop/event_loop.h"
#include "host/rendezvous/rendezvous_backend.h"

/* The register of a job as an agent uses it: what core/succession/succession_machine wants to read,
 * append and renew there, and the answers as its events. It keeps the entry known last, for what
 * the machine does not know: where the host of that entry listens. */

struct agent_register;

struct agent_register_settings {
    const struct agent_rendezvous_settings *agent; /* borrowed */
    void (*settled)(void *context);                /* no READ and no APPEND is under way any more */
    void *context;
};

/* Failures as register_open. */
__attribute__((warn_unused_result)) enum failure_code agent_register_new(struct event_loop *loop,
    const struct agent_register_settings *settings, struct agent_register **out_register,
    struct failure *failure);
/* NULL is fine. An append under way may still take effect. */
void agent_register_free(struct agent_register *reg);

/* Whether there is nothing to be kept of the record. */
bool agent_register_is_empty(const struct rendezvous_state *record);

/* How a host of the job's store leaves, as core/succession/succession_machine wants it: the
 * successor is told, then the others; the store stays until they have left it; and nothing that is
 * being appended to the register is left behind. */

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

struct agent_succession;

/* Opens the register of the configuration, and a port for the store that this node may come to
 * host. `settings` is borrowed. Failures as register_open and agent_hosted_store_open. */
__attribute__((warn_unused_result)) enum failure_code agent_succession_new(struct event_loop *loop,
    const struct agent_rendezvous_settings *settings, struct agent_succession **out_succession,
    struct failure *failure);
/* NULL is fine. An append under way may still take effect. */
void agent_succession_free(struct agent_succession *succession);

/* As agent_hosted_store_reached; empty where another node hosts the store. */
const char *agent_succession_reached_address(const struct agent_succession *succession);

/* The connection to the host, which outlives this. Before anything is performed. */
void agent_succession_use(struct agent_succession *succession, struct rendezvous_backend *backend);

void agent_succession_perform(
    struct agent_succession *succession, const struct succession_effect *effect);

/* Takes what the backend tells of its connection; false: it is no such event, and for the
 * rendezvous machine. */
bool agent_succession_take(
    struct agent_succession *succession, const struct rendezvous_event *event);
/* The record that this node writes. As the host, it waits for the nodes in it. */
void agent_succession_see(
    struct agent_succession *succession, const struct rendezvous_state *record);
/* The host's machine is silent on the connection, or it is heard again. */
void agent_succession_doubt(struct agent_succession *succession, bool is_doubted);
/* This node stood still, and has given up its connection. */
void agent_succession_give_up(struct agent_succession *succession);

/* Appends why the register is not reached, while this node needs it: to find a host, or as one. */
void agent_succession_write_obstacle(const struct agent_succession *succession, struct text *out);

/* What this node, as the host, wants for those that delegate to it: TELL_STANDINGS and CUT_OFF. */
void agent_succession_serve(
    struct agent_succession *succession, const struct rendezvous_effect *effect);

/* Calls `done`, perhaps at once, when nothing is being appended, and no other node is connected to
 * this node's store, or `patience` is over. */
void agent_succession_linger(struct agent_succession *succession, struct duration patience,
    void (*done)(void *context), void *context);

#endif
