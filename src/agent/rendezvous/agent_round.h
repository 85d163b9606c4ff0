/* SPDX-License-Identifier: BSD-3-Clause */
/* Carries out what core/round/round_exchange asks: a round's address, ranks and exit barrier
 * through the record's backend, or through the connections of fixed nodes, and the workers' store
 * where it is this node's to serve. What it learns goes to the node's queue. It decides nothing. */
#ifndef MUSTER_AGENT_RENDEZVOUS_AGENT_ROUND_H
#define MUSTER_AGENT_RENDEZVOUS_AGENT_ROUND_H

#include <stdbool.h>

#include "agent/rendezvous/agent_node_settings.h"
#include "base/log.h"
#include "core/launch/launch_config.h"
#include "core/round/round_exchange.h"
#include "host/loop/event_loop.h"
#include "host/loop/tally.h"
#include "host/rendezvous/rendezvous_backend.h"
#include "host/store/store_client.h"
#include "host/store/store_thread.h"

/* The two connections of a fixed node to the job's store. agent_round sends the requests of the
 * round over them, and reads the answers. What happens to the connections goes to the node's queue.
 */

#define AGENT_FIXED_NODES_CONNECTIONS 2

struct agent_fixed_nodes;

/* Settings and `store` (NULL on nodes that do not host it) are borrowed and outlive the object.
 * Never NULL. */
struct agent_fixed_nodes *agent_fixed_nodes_new(struct event_loop *loop,
    const struct agent_rendezvous_settings *settings, struct store_thread *store);
/* Cancels the requests under way. NULL is fine. */
void agent_fixed_nodes_free(struct agent_fixed_nodes *nodes);
/* Appends why the store is not reached, while it is tried (store_client_write_obstacle). */
void agent_fixed_nodes_write_obstacle(const struct agent_fixed_nodes *nodes, struct text *out);

/* For what is no part of a round. False: there is no connection. */
bool agent_fixed_nodes_ask(struct agent_fixed_nodes *nodes, const struct store_client_call *call);
bool agent_fixed_nodes_are_connected(const struct agent_fixed_nodes *nodes);

/* The membership's FLUSH: LEFT follows, perhaps at once. */
void agent_fixed_nodes_flush(struct agent_fixed_nodes *nodes, struct duration patience);

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
