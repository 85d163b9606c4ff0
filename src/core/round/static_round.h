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
#ifndef MUSTER_CORE_ROUND_STATIC_ROUND_H
#define MUSTER_CORE_ROUND_STATIC_ROUND_H

#include "core/round/round_step.h"

/* A part of the round exchange: each fixed node claims its rank before it meets the others, so that
 * two nodes with one rank (--node-rank) are told so, and the second takes no part.
 *
 * A claim is a presence key (core/store/store_presence) that holds the node's name: Muster's store
 * lets nobody else write it until the connection of the node that did has ended. So a node that is
 * started again gets its rank as soon as the one before it is gone. A node that finds another's
 * claim looks again each second. At the second look it tells both nodes: its own log, and by the
 * key RIVAL, which is a presence key, too, the other one, which looks at that key while it waits
 * for the meeting. It gives up
 * when the other's claim has outlived the time in which the store would have noticed that the
 * machine of the other is gone.
 *
 * Where the store serves no claims, as that of a node of torchrun's, there are none. torchrun has
 * nothing like it: two of its agents with one rank overwrite each other's keys. */

/* CONNECTED. Each of the first three returns true when this node may meet the others now. */
bool round_claim_begin(struct round_step *step);
/* CHECKED of CLAIM_SERVED, and VALUES of CLAIM. Answers that come later than that are ignored. */
bool round_claim_take_checked(struct round_step *step);
bool round_claim_take_values(struct round_step *step);
/* The timer: the node looks again, or gives up. */
void round_claim_wait_on(struct round_step *step);
/* VALUES of RIVAL. */
void round_claim_take_rival(struct round_step *step);

/* Releases what the exchange keeps of claims. */
void round_claim_clear(struct round_claim *claim);

/* A part of the round exchange: after a join that has timed out, it finds out which nodes are
 * missing, so that JOIN_FAILED can name them. */

/* The join has timed out. */
void round_diagnosis_start(struct round_step *step);
void round_diagnosis_take_checked(struct round_step *step);
/* The store has not answered the questions in time. */
void round_diagnosis_time_out(struct round_step *step);

/* BEGIN, of the first attempt or of a later one. */
void static_round_begin(struct round_step *step);
/* CONNECTED: what the node does before it writes its role info, and after it. */
void static_round_meet(struct round_step *step);
void static_round_start(struct round_step *step);

/* The timer of a join: the node looks whether another node has given up, or gives up itself. */
void static_round_wait_on(struct round_step *step);
/* Answers that look. */
void static_round_take_checked(struct round_step *step);

/* RESTART_ASKED, FAILURE_ASKED, and the deadlines of a join and of the exit barrier. */
void static_round_restart(struct round_step *step);
void static_round_fail(struct round_step *step);
void static_round_join_late(struct round_step *step);
void static_round_leave_late(struct round_step *step);

/* Answers of ADD (but to NUM_MEMBERS), of GET of a decision, and of OPEN_WORKER_STORE. */
void static_round_take_count(struct round_step *step);
void static_round_take_decision(struct round_step *step);
void static_round_take_renewed(struct round_step *step);
void static_round_lose_connection(struct round_step *step);

#endif
