/* SPDX-License-Identifier: BSD-3-Clause */
/* Which nodes are not ready for a round that has all its nodes, where the nodes exchange their
 * roles: those that have not published theirs, perhaps because their old workers take long to end.
 * Nothing follows from it but what a node that waits says. */
#ifndef MUSTER_AGENT_RENDEZVOUS_AGENT_UNREADY_H
#define MUSTER_AGENT_RENDEZVOUS_AGENT_UNREADY_H

#include <stdbool.h>

#include "core/rendezvous/rendezvous_state.h"
#include "host/rendezvous/rendezvous_backend.h"

/* Each node that waits asks for the keys of all nodes, so nobody asks in larger rounds. */
#define AGENT_UNREADY_NODES_MAXIMUM ((size_t)64)

struct agent_unready;

/* `backend` and `run_id` are borrowed. Never NULL. */
struct agent_unready *agent_unready_new(
    struct rendezvous_backend *backend, const char *run_id, struct duration answer_timeout);
/* Only after the backend has been freed, so that nothing is under way. Accepts NULL. */
void agent_unready_free(struct agent_unready *unready);

/* Asks the store about the round of this record, in which this node is. Returns false, and does
 * nothing, while it is asked already, without a connection, at a store that is no agent's, where
 * the host tells the ranks, and in rounds of too many nodes. */
bool agent_unready_look(struct agent_unready *unready, const struct rendezvous_state *record);

/* Adds the addresses of the nodes that were not ready at the last look, if that was at this round.
 */
void agent_unready_list(
    const struct agent_unready *unready, int64_t round, struct text_list *out_names);

#endif
