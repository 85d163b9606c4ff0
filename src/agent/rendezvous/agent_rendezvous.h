/* SPDX-License-Identifier: BSD-3-Clause */
/* How one node meets the others, carried out: the shells behind the membership, the rendezvous and
 * the round of the node machine. Hosts the job's store where that is this node's. What the shells
 * learn goes to the node's queue; nothing is decided here. */
#ifndef MUSTER_AGENT_RENDEZVOUS_AGENT_RENDEZVOUS_H
#define MUSTER_AGENT_RENDEZVOUS_AGENT_RENDEZVOUS_H

#include <stdbool.h>

#include "agent/rendezvous/agent_node_settings.h"
#include "base/failure.h"
#include "base/text.h"
#include "core/node/node_machine.h"
#include "host/loop/event_loop.h"
#include "host/store/store_client.h"

struct agent_rendezvous;

/* Opens the store's port if this node hosts it; nothing is agreed yet. FAILURE_SYSTEM when the port
 * is taken. */
__attribute__((warn_unused_result)) enum failure_code agent_rendezvous_new(struct event_loop *loop,
    const struct agent_rendezvous_settings *settings, struct agent_rendezvous **out_rendezvous,
    struct failure *failure);

/* Closes the store and all connections. NULL is fine. */
void agent_rendezvous_free(struct agent_rendezvous *rendezvous);

/* For what is recorded: the machine is about to take the event; the effect, internal or not,
 * follows from it. */
void agent_rendezvous_note_event(
    struct agent_rendezvous *rendezvous, const struct node_event *event);
void agent_rendezvous_note_effect(
    struct agent_rendezvous *rendezvous, const struct node_effect *effect);

/* The machine has taken the event. */
void agent_rendezvous_note_step(
    struct agent_rendezvous *rendezvous, const struct node_event *event);

/* Carries out an effect that is not internal, of any machine but the agent's; NOTE is written to
 * the log, SETTLED does nothing. */
void agent_rendezvous_perform(
    struct agent_rendezvous *rendezvous, const struct node_effect *effect);

/* What the workers of this job have imported, for nodes that join later. Where nodes do not come
 * and go, nobody wants it. */
void agent_rendezvous_publish_learned_list(struct agent_rendezvous *rendezvous, struct slice text);

/* Appends why the store where nodes meet is not reached, while this node tries to reach it. */
void agent_rendezvous_write_obstacle(const struct agent_rendezvous *rendezvous, struct text *out);

/* Where nodes come and go: this node has waited for a while. Says in the log which other jobs wait
 * at the same store. */
void agent_rendezvous_look_for_neighbours(struct agent_rendezvous *rendezvous);
/* This node waits no longer. */
void agent_rendezvous_stop_looking_for_neighbours(struct agent_rendezvous *rendezvous);

/* Where nodes come and go: whether this node is in a round that has all its nodes. Adds the
 * addresses of those that are not ready, as far as it is known. */
bool agent_rendezvous_is_in_round(
    const struct agent_rendezvous *rendezvous, struct text_list *out_unready);
/* Appends when this node is let into the world beside which it waits, if that is known. */
void agent_rendezvous_describe_admission(
    const struct agent_rendezvous *rendezvous, struct text *out);
/* A moment before either is asked: asks the store, if it may know more. Returns whether it does. */
bool agent_rendezvous_look_for_unready(struct agent_rendezvous *rendezvous);

/* The connection to the job's store, for what nodes tell its host: which one it is, from 1 on, or 0
 * where there is none; a request on it, false where there is none; and where the store is. */
uint64_t agent_rendezvous_connection(const struct agent_rendezvous *rendezvous);
bool agent_rendezvous_ask(
    struct agent_rendezvous *rendezvous, const struct store_client_call *call);
bool agent_rendezvous_find_store(
    const struct agent_rendezvous *rendezvous, const char **out_host, int *out_port);

/* This node stood still, and its workers were ended: where nodes come and go, it gives up its
 * connection to the job's store and joins anew. */
void agent_rendezvous_give_up(struct agent_rendezvous *rendezvous, const char *reason);

#endif
