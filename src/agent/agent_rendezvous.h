/* SPDX-License-Identifier: BSD-3-Clause */
/* How one node joins its job: gives every attempt its ranks and a fresh store for the workers, and
 * lets nodes leave together. Hosts the store when this node is the master. The agent sees one
 * contract; behind it is a job on this node alone (nothing to agree on), the static rendezvous of
 * fixed nodes (agent/agent_static_rendezvous), or the dynamic one of nodes that come and go
 * (agent/agent_dynamic_rendezvous). */
#ifndef MUSTER_AGENT_AGENT_RENDEZVOUS_H
#define MUSTER_AGENT_AGENT_RENDEZVOUS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/agent_preparation.h"
#include "base/failure.h"
#include "base/log.h"
#include "core/event_record.h"
#include "core/failure_account.h"
#include "core/launch_config.h"
#include "core/worker_environment.h"
#include "host/event_loop.h"
#include "host/tally.h"

/* Called on the agent's loop, perhaps from inside a call below. Strings are borrowed for the call;
 * those of a placement must be good until the next join. */
struct agent_rendezvous_observer {
    /* Answers to join, with its ticket. `attempt` in the placement is how many restarts the job has
     * used, which may be less or more than this node thought. */
    void (*joined)(void *context, int64_t ticket, const struct node_placement *placement);
    void (*join_failed)(void *context, int64_t ticket, const char *reason);
    void (*job_over)(void *context); /* it ended well, and had no place for this node */
    void (*barrier_ended)(void *context, bool has_passed);
    void (*peer_restart)(void *context, int attempt);
    void (*peer_failed)(void *context, const char *reason);
    void (*failure_stands)(void *context); /* the others know of it */
    /* After joined, before what it led to: who failed first, on another node. Borrowed. */
    void (*root_cause_learnt)(void *context, const struct failure_account *account);
    /* After joined: the world it told of is no more. A join is to follow. */
    void (*round_over)(void *context, const char *reason);
    /* What the rendezvous records of itself, see core/rendezvous_diary; NULL: nobody wants it. With
     * fixed nodes there is none, as there. */
    void (*recorded)(void *context, const struct event_rendezvous *record);
    void *context;
};

struct agent_rendezvous_settings {
    const struct launch_config *config; /* borrowed, as all of this */
    const struct agent_preparation *preparation;
    const struct text_list *environment;
    const struct log *log;
    /* What the stores that this agent serves carry out: the workers', which the agents of fixed
     * nodes use too, and the record's. NULL: nobody counts. */
    struct tally *worker_store_operations;
    struct tally *record_store_operations;
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

/* Answered by joined, join_failed or job_over; replaces a join in flight. `ticket` grows with each
 * join. */
void agent_rendezvous_join(struct agent_rendezvous *rendezvous, int64_t ticket, int attempt);

/* Answered by barrier_ended. */
void agent_rendezvous_enter_barrier(struct agent_rendezvous *rendezvous);

/* Nodes that come and go: workers failed here, and no restart is left; but the cause may be that
 * another node is lost. Answered by failure_stands, round_over or peer_failed. */
void agent_rendezvous_doubt_failure(
    struct agent_rendezvous *rendezvous, const struct failure_account *account);

/* Tell the other nodes, if there are any: that workers failed here and the job is to restart; that
 * the job has failed; that this node goes, and the others may go on if they can without it; that
 * the job is done. `account` is of the failure that it is because of, borrowed; NULL when no worker
 * of this node has failed. */
void agent_rendezvous_announce_restart(
    struct agent_rendezvous *rendezvous, const struct failure_account *account);
void agent_rendezvous_announce_failure(
    struct agent_rendezvous *rendezvous, const struct failure_account *account);
void agent_rendezvous_announce_leave(struct agent_rendezvous *rendezvous);
void agent_rendezvous_announce_success(struct agent_rendezvous *rendezvous);

/* The agent ends because of a signal, for the record: others are told by what is announced. */
void agent_rendezvous_note_signal(struct agent_rendezvous *rendezvous);

/* Before the end: calls `settled`, perhaps at once, when the other nodes have been told everything
 * or can no longer be. */
void agent_rendezvous_settle(
    struct agent_rendezvous *rendezvous, void (*settled)(void *context), void *context);

#endif
