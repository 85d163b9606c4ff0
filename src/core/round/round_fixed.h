/* SPDX-License-Identifier: BSD-3-Clause */
/* A part of the round exchange: what only fixed nodes do. They connect to a store that is known
 * beforehand. They tell each other of restarts and failures, which changing nodes find in their
 * record.
 *
 * They do so when every agent of the job is Muster's, with keys under `/<run_id>/muster/`. A
 * restart on one node restarts all nodes, with the same attempt number. No node starts attempt N +
 * 1 before all workers of attempt N have ended on all nodes and rank 0 has renewed the workers'
 * store. All nodes learn at once that a node has failed for good. docs/static-rendezvous.md has the
 * protocol. In a job with agents of both kinds a restart stays on its node, as among torchrun's
 * agents. */
#ifndef MUSTER_CORE_ROUND_ROUND_FIXED_H
#define MUSTER_CORE_ROUND_ROUND_FIXED_H

#include "core/round/round_step.h"

/* BEGIN, of the first attempt or of a later one. */
void round_fixed_begin(struct round_step *step);
/* CONNECTED: what the node does before it writes its role info, and after it. */
void round_fixed_meet(struct round_step *step);
void round_fixed_start(struct round_step *step);

/* The timer of a join: the node looks whether another node has given up, or gives up itself. */
void round_fixed_wait_on(struct round_step *step);
/* Answers that look. */
void round_fixed_take_checked(struct round_step *step);

/* RESTART_ASKED, FAILURE_ASKED, and the deadlines of a join and of the exit barrier. */
void round_fixed_restart(struct round_step *step);
void round_fixed_fail(struct round_step *step);
void round_fixed_join_late(struct round_step *step);
void round_fixed_leave_late(struct round_step *step);

/* Answers of ADD (but to NUM_MEMBERS), of GET of a decision, and of OPEN_WORKER_STORE. */
void round_fixed_take_count(struct round_step *step);
void round_fixed_take_decision(struct round_step *step);
void round_fixed_take_renewed(struct round_step *step);
void round_fixed_lose_connection(struct round_step *step);

#endif
