/* SPDX-License-Identifier: BSD-3-Clause */
/* Of membership_changing: how a world ends for this node, whose workers are to be in the next one.
 * When a signal told another node to end, this node settles first: a signal to the whole job does
 * not reach all nodes at once. Matches nothing in PyTorch, where the agents of a job do not tell
 * each other of signals. */
#ifndef MUSTER_CORE_NODE_MEMBERSHIP_WORLD_END_H
#define MUSTER_CORE_NODE_MEMBERSHIP_WORLD_END_H

#include "core/node/membership_step.h"

/* The signal that another node told, or 0. */
int membership_signal_told(const struct rendezvous_effect *effect);

/* Handlers. */
membership_handler membership_leave_round, membership_end_world, membership_end_world_or_settle,
    membership_end_settling, membership_join_when_settled, membership_wait_for_join,
    membership_blame_world;

#endif
