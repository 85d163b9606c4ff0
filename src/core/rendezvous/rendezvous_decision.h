/* SPDX-License-Identifier: BSD-3-Clause */
/* What a node does next by torchrun's rules. An operation looks at the record and names an action;
 * the caller carries it out and writes the changed record.
 * The code can be compared line by line with _RendezvousExitOp, _RendezvousJoinOp,
 * _RendezvousCloseOp, _RendezvousKeepAliveOp and _DistributedRendezvousOpExecutor in
 * torch/distributed/elastic/rendezvous/dynamic_rendezvous.py. This module compares no clocks: the
 * caller says which deadlines have passed and what is due. */
#ifndef MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_DECISION_H
#define MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_DECISION_H

#include <stdbool.h>

#include "base/duration.h"
#include "core/launch/launch_config.h"
#include "core/rendezvous/rendezvous_state.h"

/* What one node can do to the record: the actions of torchrun, under torchrun's names, and how each
 * of them changes the record. rendezvous_decision decides which action a node takes. Matches
 * _Action and _DistributedRendezvousOpExecutor in
 * torch/distributed/elastic/rendezvous/dynamic_rendezvous.py. */

/* The members and numbers of _Action, and GracefulExit, which is an exception in torchrun. */
enum rendezvous_action {
    RENDEZVOUS_KEEP_ALIVE = 1,
    RENDEZVOUS_ADD_TO_PARTICIPANTS = 2,
    RENDEZVOUS_ADD_TO_WAIT_LIST = 3,
    RENDEZVOUS_ADD_TO_REDUNDANCY_LIST = 4,
    RENDEZVOUS_REMOVE_FROM_PARTICIPANTS = 5,
    RENDEZVOUS_REMOVE_FROM_WAIT_LIST = 6,
    RENDEZVOUS_REMOVE_FROM_REDUNDANCY_LIST = 7,
    RENDEZVOUS_MARK_COMPLETE = 8,
    RENDEZVOUS_MARK_CLOSED = 9,
    RENDEZVOUS_SYNC = 10,
    RENDEZVOUS_ERROR_CLOSED = 11,
    RENDEZVOUS_ERROR_TIMEOUT = 12,
    RENDEZVOUS_FINISH = 13,
    RENDEZVOUS_GRACEFUL_EXIT = 14,
};

/* Carries out an action for `node`. The first nine actions change the record; the others do
 * nothing. `now` becomes the heartbeat of the node. When a participant leaves, this includes
 * torchrun's _remove_participant_epilogue. A round that becomes complete waits for no more nodes:
 * `wanted` becomes 0. */
void rendezvous_apply(struct rendezvous_state *state, const struct rendezvous_settings *settings,
    const struct node_identity *node, enum rendezvous_action action, struct wall_time now);

/* An open round has enough nodes, but none of them has begun the last call or made it complete,
 * since none has brought it to that number: others are gone again, or somebody else has written
 * them. Does so now. Returns whether the record has changed. */
bool rendezvous_call_last(struct rendezvous_state *state,
    const struct rendezvous_settings *settings, struct wall_time now);

struct rendezvous_context {
    const struct node_identity *node;
    const struct rendezvous_state *state;
    const struct rendezvous_settings *settings;
    bool is_late; /* the operation's own deadline has passed */
    /* the 5 s after that deadline, in which a node still takes itself out, have passed too */
    bool is_too_late;
    bool is_last_call_over; /* the record's deadline has passed */
    /* this node's heartbeat is at least one interval old; false if it has none */
    bool is_keep_alive_due;
};

enum rendezvous_action rendezvous_decide_exit(const struct rendezvous_context *context);
enum rendezvous_action rendezvous_decide_join(const struct rendezvous_context *context);

#endif
