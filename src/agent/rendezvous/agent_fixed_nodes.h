/* SPDX-License-Identifier: BSD-3-Clause */
/* The two connections of a fixed node to the job's store. agent_round sends the requests of the
 * round over them, and reads the answers. What happens to the connections goes to the node's queue.
 */
#ifndef MUSTER_AGENT_RENDEZVOUS_AGENT_FIXED_NODES_H
#define MUSTER_AGENT_RENDEZVOUS_AGENT_FIXED_NODES_H

#include <stdbool.h>

#include "agent/rendezvous/agent_rendezvous.h"
#include "host/loop/event_loop.h"
#include "host/store/store_client.h"
#include "host/store/store_thread.h"

#define AGENT_FIXED_NODES_CONNECTIONS 2

struct agent_fixed_nodes;

/* Settings and `store` (NULL on nodes that do not host it) are borrowed and outlive the object.
 * Never NULL. */
struct agent_fixed_nodes *agent_fixed_nodes_new(struct event_loop *loop,
    const struct agent_rendezvous_settings *settings, struct store_thread *store);
/* Cancels the requests under way. NULL is fine. */
void agent_fixed_nodes_free(struct agent_fixed_nodes *nodes);

/* CONNECTED or CONNECTION_LOST follows. */
void agent_fixed_nodes_connect(struct agent_fixed_nodes *nodes);

/* Sends on the connection for requests, or on the one for WAITs. Connecting must have begun.
 * `call->done` calls agent_fixed_nodes_answered, except for FAILURE_CANCELLED. If it says what is
 * wrong with the answer, both connections count as lost. */
void agent_fixed_nodes_send(
    struct agent_fixed_nodes *nodes, const struct store_client_call *call, bool is_wait);
void agent_fixed_nodes_answered(
    struct agent_fixed_nodes *nodes, bool is_wait, const char *trouble_or_null);

/* Appends this node's address as the store sees it, where it has proved itself to a store on
 * another machine. */
void agent_fixed_nodes_write_address(const struct agent_fixed_nodes *nodes, struct text *out);
/* Appends why the store is not reached, while it is tried (store_client_write_obstacle). */
void agent_fixed_nodes_write_obstacle(const struct agent_fixed_nodes *nodes, struct text *out);

/* On the host of the store: deletes every key but the agents'. STORE_OPENED follows. */
void agent_fixed_nodes_renew_store(struct agent_fixed_nodes *nodes);

/* The membership's FLUSH: LEFT follows, perhaps at once. */
void agent_fixed_nodes_flush(struct agent_fixed_nodes *nodes, struct duration patience);

#endif
