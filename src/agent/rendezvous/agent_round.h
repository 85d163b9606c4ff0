/* SPDX-License-Identifier: BSD-3-Clause */
/* Carries out what core/round/round_exchange asks: a round's address, ranks and exit barrier
 * through the record's backend, or through the connections of fixed nodes, and the workers' store
 * where it is this node's to serve. What it learns goes to the node's queue. It decides nothing. */
#ifndef MUSTER_AGENT_RENDEZVOUS_AGENT_ROUND_H
#define MUSTER_AGENT_RENDEZVOUS_AGENT_ROUND_H

#include "agent/rendezvous/agent_fixed_nodes.h"
#include "agent/rendezvous/agent_rendezvous.h"
#include "core/round/round_exchange.h"
#include "host/loop/event_loop.h"
#include "host/rendezvous/rendezvous_backend.h"

struct agent_round;

/* Either `backend` or `fixed` is NULL. All are borrowed, and answer no more when the object is
 * freed. Never NULL. */
struct agent_round *agent_round_new(struct event_loop *loop,
    const struct agent_rendezvous_settings *settings, struct rendezvous_backend *backend,
    struct agent_fixed_nodes *fixed);
/* `reached` says by which name others reach this machine, or NULL: it is not known. Without it the
 * node's own name is published. */
void agent_round_ask_for_name(
    struct agent_round *round, const char *(*reached)(void *context), void *context);
/* Another node hosts the store now: says again what this node has said in the round, and asks again
 * what has not been answered. */
void agent_round_say_again(struct agent_round *round);
/* NULL is fine. */
void agent_round_free(struct agent_round *round);

void agent_round_perform(struct agent_round *round, const struct round_effect *effect);

#endif
