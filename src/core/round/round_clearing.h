/* SPDX-License-Identifier: BSD-3-Clause */
/* A part of the round exchange: which keys of earlier rounds rank 0 has deleted. All nodes are in
 * its round, so no node needs the round before the previous one. Of rounds whose ranks the host of
 * the store has told, the nodes have written no keys, and a job of thousands need not delete them.
 * Beside torchrun's nodes the keys stay, because addresses are looked for in earlier rounds. */
#ifndef MUSTER_CORE_ROUND_ROUND_CLEARING_H
#define MUSTER_CORE_ROUND_ROUND_CLEARING_H

#include "core/round/round_step.h"

/* A round begins. The exchange knows its nodes, and whether they are told their ranks. */
void round_clearing_note_begin(struct round_step *step);
/* This node has joined. */
void round_clearing_do(struct round_step *step);

#endif
