/* SPDX-License-Identifier: BSD-3-Clause */
/* A part of the round exchange: when a join has come to nothing in its time, finds out who is
 * missing, so that JOIN_FAILED can name it. */
#ifndef MUSTER_CORE_ROUND_DIAGNOSIS_H
#define MUSTER_CORE_ROUND_DIAGNOSIS_H

#include "core/round_step.h"

/* The join's time is over, or the connections are new in the midst of the diagnosis. */
void round_diagnosis_start(struct round_step *step);
void round_diagnosis_take_checked(struct round_step *step);
/* The store has not answered in time. */
void round_diagnosis_time_out(struct round_step *step);

#endif
