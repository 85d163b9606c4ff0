/* SPDX-License-Identifier: BSD-3-Clause */
/* How the kernel treats a standby worker: it is ended first when memory is short
 * (/proc/PID/oom_score_adj). Where that cannot be set, nothing happens. */
#ifndef MUSTER_HOST_STANDBY_SPARE_TREATMENT_H
#define MUSTER_HOST_STANDBY_SPARE_TREATMENT_H

#include <sys/types.h>

/* The process is to be ended before all others. */
void spare_treatment_begin(pid_t pid);

/* It is treated like this process again. */
void spare_treatment_end(pid_t pid);

#endif
