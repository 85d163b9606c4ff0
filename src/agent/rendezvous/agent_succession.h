/* SPDX-License-Identifier: BSD-3-Clause */
/* What core/succession/succession_machine wants, carried out: entries of the job's register are
 * read, written and renewed, the store of this node stands by and is served, and the host of the
 * term is dialled. What becomes of it goes to the node's queue. It keeps what the machine does not
 * know: where the host of the entry read last listens. Nothing is decided here. */
#ifndef MUSTER_AGENT_RENDEZVOUS_AGENT_SUCCESSION_H
#define MUSTER_AGENT_RENDEZVOUS_AGENT_SUCCESSION_H

#include <stdbool.h>

#include "agent/rendezvous/agent_node_settings.h"
#include "agent/rendezvous/agent_store_host.h"
#include "base/duration.h"
#include "core/rendezvous/rendezvous_state.h"
#include "host/loop/event_loop.h"
#include "host/rendezvous/rendezvous_backend.h"
struct agent_hosted_store;

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
