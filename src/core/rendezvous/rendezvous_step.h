/* SPDX-License-Identifier: BSD-3-Clause */
/* One step of a rendezvous machine: the parts of the machine, the event, the effects. This module
 * also has the actions that change several parts at once: beginning and ending a world, ending this
 * node's part in the job, writing. Every part is changed only by the module after which it is
 * named. The decisions that need several parts are in rendezvous_evaluation, rendezvous_joining and
 * rendezvous_renewal. */
#ifndef MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_STEP_H
#define MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_STEP_H

#include <stdbool.h>

#include "base/failure.h"
#include "core/rendezvous/rendezvous_delegation.h"
#include "core/rendezvous/record_connection.h"
#include "core/rendezvous/failure_detector.h"
#include "core/rendezvous/rendezvous_machine.h"
#include "core/rendezvous/rendezvous_member.h"
#include "core/rendezvous/rendezvous_regroup.h"

#define RENDEZVOUS_MESSAGE_SIZE FAILURE_MESSAGE_SIZE

enum rendezvous_goal {
    RENDEZVOUS_GOAL_NONE, /* the agent has not asked to join yet */
    RENDEZVOUS_GOAL_TAKE_PART,
    RENDEZVOUS_GOAL_CLOSE,
    RENDEZVOUS_GOAL_LEAVE,
    RENDEZVOUS_GOAL_OVER, /* closed, failed or settled: the node writes nothing more */
    RENDEZVOUS_GOAL_COUNT,
};

/* What this node wants to do in the job, and what its agent was told of it. Only this module
 * changes it. */
struct rendezvous_purpose {
    enum rendezvous_goal goal;
    enum rendezvous_effect_kind end; /* once OVER: the effect that told the agent */
    /* The reason that the agent was told last. CLOSE: the reason that is written into the record.
     */
    char message[RENDEZVOUS_MESSAGE_SIZE];
    int signal; /* CLOSE, LEAVE: the signal that told this node to end; 0: none */
    /* The agent knows that the record was closed, and its workers may finish. */
    bool is_closing_told;
};

struct rendezvous_machine {
    struct rendezvous_settings settings;
    struct node_role role;
    bool has_succession;
    bool is_register_stuck; /* as the host */
    struct rendezvous_purpose purpose;
    struct record_connection connection;
    struct rendezvous_view view;
    struct rendezvous_place place;
    struct rendezvous_patience patience;
    struct rendezvous_finish finish;
    struct failure_detector detector;
    struct rendezvous_failure failure;
    struct rendezvous_growth growth;
    struct restart_history restarts;
    struct rendezvous_warming warming;
    struct rendezvous_delegating delegating; /* to the host of the store … */
    struct rendezvous_delegates delegates;   /* … or to this node, which is that host */
};

struct rendezvous_step {
    struct rendezvous_machine *machine;
    const struct rendezvous_event *event;
    struct rendezvous_effects *effects;
    bool is_idle; /* the event says nothing new: nothing follows from it */
    bool is_held; /* what follows from the event waits for more of its kind */
};

/* Appends an effect. `_kind` appends an effect without values. */
void rendezvous_step_push(struct rendezvous_step *step, struct rendezvous_effect effect);
void rendezvous_step_push_kind(struct rendezvous_step *step, enum rendezvous_effect_kind kind);
/* Ties the identity of this node to the connection, and says whether its workers are done. */
void rendezvous_step_present(struct rendezvous_step *step);

/* Whether a node is in the exit barrier of the round seen. It asks the store at most once between
 * two signs of life. Until the store answers, it returns true. */
bool rendezvous_is_any_node_done(struct rendezvous_step *step);

/* Whether this node has the tasks that one node has for all: to admit who waits, and to tell the
 * watchers what its writers have not announced. It is the host of a store that serves presence, or,
 * without presence, the first node of the round. */
bool rendezvous_step_acts_for_all(const struct rendezvous_machine *machine);

/* Begins a draft: a copy of the record as seen last, for the caller to change. It has at least as
 * many restarts as the job has used, as far as this node knows, and an origin. */
struct rendezvous_state *rendezvous_draft_begin(struct rendezvous_step *step);
/* Writes the draft, with rounds counted on (rendezvous_view_count_on). `is_quiet`: no watcher needs
 * to know. A node that delegates writes nothing: what it would write follows from its wish. Returns
 * true, so that its callers can return it to say that they have written. */
bool rendezvous_draft_write(struct rendezvous_step *step, bool is_quiet);
/* Writes a draft in which only heartbeats have changed. Returns true. */
bool rendezvous_draft_write_heartbeats(struct rendezvous_step *step);

/* Whether the host of the store is sought, so that there is no connection for a while. */
bool rendezvous_is_host_sought(const struct rendezvous_step *step);
/* Tries to connect to the store for the first time, until `deadline`. */
void rendezvous_connect_until(struct rendezvous_step *step, struct instant deadline);
/* Tries to connect again to a store that was lost now. */
void rendezvous_connect_again(struct rendezvous_step *step);
/* Tells the agent, every few seconds, that the store is still awaited. */
void rendezvous_tell_waiting(struct rendezvous_step *step);

/* The ranks of this node in the round seen, if the host of the store has told them, or is this
 * node. Else their world size is 0. */
struct rank_assignment rendezvous_step_ranks(const struct rendezvous_step *step);
/* Whether this node is in the round seen, which is held: it will be told its ranks when all nodes
 * of the round are ready. */
bool rendezvous_step_is_held(const struct rendezvous_step *step);
/* Tells the agent that its world, which was held, may begin, if so. */
void rendezvous_release_world(struct rendezvous_step *step);
/* Tells the agent, which has asked for it, the world seen last. */
void rendezvous_tell_world(struct rendezvous_step *step);
/* Leaves the world in which this node runs, without telling the agent. */
void rendezvous_leave_world(struct rendezvous_step *step);
/* Leaves the world and tells the agent that the round is over. Does nothing when the node is in no
 * world, so the agent is told once per round. */
void rendezvous_end_world(struct rendezvous_step *step, const char *reason);

/* Ends this node's part: with a last write for CLOSE or LEAVE, if it can still write. */
void rendezvous_end_part(struct rendezvous_step *step, enum rendezvous_goal goal);
/* The failure on this node ends the job: tells the agent, and goes on to close the record. */
void rendezvous_let_failure_stand(struct rendezvous_step *step);
/* This node's part is over because the record is closed. */
void rendezvous_close_part(struct rendezvous_step *step);
/* Tells the agent, once, that the record is closed but its workers may finish. */
void rendezvous_tell_closing(struct rendezvous_step *step);
/* This node's part is over because it failed. */
void rendezvous_fail(struct rendezvous_step *step, const char *reason);
/* This node's part is over because it has closed the record or left, or has given up doing so. */
void rendezvous_settle(struct rendezvous_step *step);
/* Tells the end again to an agent that still asks to join. */
void rendezvous_repeat_end(struct rendezvous_step *step);

#endif
