/* SPDX-License-Identifier: BSD-3-Clause */
/* Carries out core/round_exchange: a round's address, ranks and exit barrier through the record's
 * backend, and the workers' store where it is this node's to serve. */
#ifndef MUSTER_AGENT_AGENT_ROUND_H
#define MUSTER_AGENT_AGENT_ROUND_H

#include <stdbool.h>
#include <stdint.h>

#include "core/rendezvous_state.h"
#include "core/worker_environment.h"
#include "host/event_loop.h"
#include "host/rendezvous_backend.h"

struct agent_rendezvous_settings;
struct agent_round;

struct agent_round_observer {
    void (*joined)(void *context, const struct node_placement *placement);
    void (*failed)(void *context, const char *reason);
    void (*barrier_ended)(void *context, bool has_passed);
    void *context;
};

/* A complete round and this node's place in it; borrowed for the call. */
struct agent_round_world {
    const struct rendezvous_state *state;
    const struct node_identity *identity;
    int64_t round;
    int group_rank;
    int node_count;
};

/* Settings, backend and address (this node's) are borrowed and outlive the object. Never NULL. */
struct agent_round *agent_round_new(struct event_loop *loop,
    const struct agent_rendezvous_settings *settings, struct rendezvous_backend *backend,
    const char *address, const struct agent_round_observer *observer);
/* After the backend has been disconnected or freed. NULL is fine. */
void agent_round_free(struct agent_round *round);

/* Answered by joined or failed, unless it is abandoned. */
void agent_round_begin(struct agent_round *round, const struct agent_round_world *world);
/* This node's name in the round begun last; NULL before. */
const char *agent_round_node(const struct agent_round *round);
void agent_round_abandon(struct agent_round *round);
/* Answered by barrier_ended, unless it is abandoned. */
void agent_round_enter_barrier(struct agent_round *round);

#endif
