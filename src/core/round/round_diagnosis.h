/* SPDX-License-Identifier: BSD-3-Clause */
/* A part of the round exchange: after a join that has timed out, it finds out which nodes are
 * missing, so that JOIN_FAILED can name them. */
#ifndef MUSTER_CORE_ROUND_ROUND_DIAGNOSIS_H
#define MUSTER_CORE_ROUND_ROUND_DIAGNOSIS_H

#include "core/round/round_step.h"

/* The join has timed out. */
void round_diagnosis_start(struct round_step *step);
void round_diagnosis_take_checked(struct round_step *step);
/* The store has not answered the questions in time. */
void round_diagnosis_time_out(struct round_step *step);

#endif
