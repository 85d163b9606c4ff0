/* SPDX-License-Identifier: BSD-3-Clause */
/* What one node can do to the record, by torchrun's names: the actions its operations decide on,
 * and how each changes the record. When to take which is rendezvous_decision's business. Matches
 * _Action and _DistributedRendezvousOpExecutor in
 * torch/distributed/elastic/rendezvous/dynamic_rendezvous.py. */
#ifndef MUSTER_CORE_RENDEZVOUS_ACTION_H
#define MUSTER_CORE_RENDEZVOUS_ACTION_H

#include "base/duration.h"
#include "core/node_identity.h"
#include "core/rendezvous_settings.h"
#include "core/rendezvous_state.h"

/* _Action, with its numbers, and GracefulExit, which is an exception there. */
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

/* Carries out an action that changes the record (the first nine; others do nothing) for `node`;
 * `now` becomes its heartbeat. Includes the participant epilogue. A round that becomes complete
 * wants nobody more. */
void rendezvous_apply(struct rendezvous_state *state, const struct rendezvous_settings *settings,
    const struct node_identity *node, enum rendezvous_action action, struct wall_time now);

/* "ADD_TO_WAIT_LIST": upstream's name; it is constant. */
const char *rendezvous_action_name(enum rendezvous_action action);

#endif
