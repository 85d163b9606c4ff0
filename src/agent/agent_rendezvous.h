/* SPDX-License-Identifier: BSD-3-Clause */
/* How one node joins its job: gives every attempt its ranks and a fresh store for the workers, and
 * lets nodes leave together. Hosts the store when this node is the master. The agent sees one
 * contract; behind it is a job on this node alone (nothing to agree on) or the static rendezvous of
 * several nodes (agent/agent_static_rendezvous). */
#ifndef MUSTER_AGENT_AGENT_RENDEZVOUS_H
#define MUSTER_AGENT_AGENT_RENDEZVOUS_H

#include "agent/agent_preparation.h"
#include "base/failure.h"
#include "base/log.h"
#include "core/launch_config.h"
#include "core/worker_environment.h"
#include "host/event_loop.h"

/* Called on the agent's loop, perhaps from inside a call below. Answers to join carry its attempt.
 */
struct agent_rendezvous_observer {
    void (*joined)(void *context, const struct node_placement *placement);
    void (*join_failed)(void *context, int attempt, const char *reason);
    void (*barrier_ended)(void *context, bool has_passed);
    void (*peer_restart)(void *context, int attempt);
    void (*peer_failed)(void *context, const char *reason);
    void *context;
};

struct agent_rendezvous_settings {
    const struct launch_config *config; /* borrowed, as all of this */
    const struct agent_preparation *preparation;
    const struct text_list *environment;
    const struct log *log;
    struct agent_rendezvous_observer observer; /* copied */
};

struct agent_rendezvous;

/* Opens the store's port if this node hosts it; nothing is agreed yet. FAILURE_SYSTEM when the port
 * is taken. */
__attribute__((warn_unused_result)) enum failure_code agent_rendezvous_new(struct event_loop *loop,
    const struct agent_rendezvous_settings *settings, struct agent_rendezvous **out_rendezvous,
    struct failure *failure);

/* Closes the store and all connections. NULL is fine. */
void agent_rendezvous_free(struct agent_rendezvous *rendezvous);

/* Answered by joined or join_failed; replaces a join in flight. */
void agent_rendezvous_join(struct agent_rendezvous *rendezvous, int attempt);

/* Answered by barrier_ended. */
void agent_rendezvous_enter_barrier(struct agent_rendezvous *rendezvous);

/* Tell the other nodes, if there are any. */
void agent_rendezvous_announce_restart(struct agent_rendezvous *rendezvous);
void agent_rendezvous_announce_failure(struct agent_rendezvous *rendezvous);

/* Before the end: calls `settled`, perhaps at once, when the other nodes have been told everything
 * or can no longer be. */
void agent_rendezvous_settle(
    struct agent_rendezvous *rendezvous, void (*settled)(void *context), void *context);

#endif
