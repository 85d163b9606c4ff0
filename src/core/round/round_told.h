/* SPDX-License-Identifier: BSD-3-Clause */
/* A part of the round exchange: what the host of the job's store tells the nodes of a round, which
 * then exchange nothing. It tells the ranks when the round begins; or, when nodes of the round may
 * still end their old workers, it holds the round, and tells them when all are ready. */
#ifndef MUSTER_CORE_ROUND_ROUND_TOLD_H
#define MUSTER_CORE_ROUND_ROUND_TOLD_H

#include "core/round/round_step.h"

/* The round begins. Returns whether it goes on: what it was told makes sense. */
bool round_told_begin(struct round_step *step);
/* All nodes of the round, which was held, are ready. */
void round_told_take_release(struct round_step *step);
/* Rank 0 has opened the store of the workers: the host tells the others. */
void round_told_note_opened(struct round_step *step);

#endif
