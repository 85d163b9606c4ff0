/* SPDX-License-Identifier: BSD-3-Clause */
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
#ifndef MUSTER_CORE_ROUND_ROUND_CLAIM_H
#define MUSTER_CORE_ROUND_ROUND_CLAIM_H

#include "core/round/round_step.h"

/* How long a node waits for a rank that another one has. It is more than the three minutes after
 * which a store ends the connection of a machine that does not answer. */
#define ROUND_CLAIM_SECONDS 200

/* CONNECTED. Each of the first three returns true when this node may meet the others now. */
bool round_claim_begin(struct round_step *step);
/* CHECKED of CLAIM_SERVED, and VALUES of CLAIM. Answers that come later than that are ignored. */
bool round_claim_take_checked(struct round_step *step);
bool round_claim_take_values(struct round_step *step);
/* The timer: the node looks again, or gives up. */
void round_claim_wait_on(struct round_step *step);

/* A node that waits for the meeting looks whether another one has come with its rank. */
void round_claim_look_for_rival(struct round_step *step);
/* VALUES of RIVAL. */
void round_claim_take_rival(struct round_step *step);

/* Releases what the exchange keeps of claims. */
void round_claim_clear(struct round_claim *claim);

#endif
