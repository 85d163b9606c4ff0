/* SPDX-License-Identifier: BSD-3-Clause */
/* How the kernel treats a standby worker: whether it is ended first when memory is short
 * (/proc/PID/oom_score_adj), and its share of the CPUs (/proc/PID/autogroup). Where that cannot be
 * set, nothing happens. */
#ifndef MUSTER_HOST_STANDBY_SPARE_TREATMENT_H
#define MUSTER_HOST_STANDBY_SPARE_TREATMENT_H

#include <sys/types.h>

/* The process is to be ended before all others. */
void spare_treatment_end_first(pid_t pid);

/* It has the value of this process again, as a child gets it. */
void spare_treatment_end_as_usual(pid_t pid);

/* Its session gets CPU time like any other, from now on. */
void spare_treatment_share_as_usual(pid_t pid);

#endif
