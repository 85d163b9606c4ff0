/* SPDX-License-Identifier: BSD-3-Clause */
/* A part of the round exchange: the exit barrier, in which a node whose workers are done waits for
 * the other nodes. Matches barrier() in torch/distributed/elastic/utils/store.py, as
 * SimpleElasticAgent calls it. */
#ifndef MUSTER_CORE_ROUND_ROUND_BARRIER_H
#define MUSTER_CORE_ROUND_ROUND_BARRIER_H

#include "core/round/round_step.h"

void round_barrier_enter(struct round_step *step);

/* Answers: ADD, WAIT of LAST_MEMBER, and the timer. */
void round_barrier_take_count(struct round_step *step);
void round_barrier_take_waited(struct round_step *step);
void round_barrier_time_out(struct round_step *step);

#endif
