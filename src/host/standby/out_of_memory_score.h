/* SPDX-License-Identifier: BSD-3-Clause */
/* Which process the kernel ends first when memory is short (/proc/PID/oom_score_adj). Where that
 * cannot be set, nothing happens. */
#ifndef MUSTER_HOST_STANDBY_OUT_OF_MEMORY_SCORE_H
#define MUSTER_HOST_STANDBY_OUT_OF_MEMORY_SCORE_H

#include <sys/types.h>

/* The process is to be ended before all others. */
void out_of_memory_score_prefer(pid_t pid);

/* It has the value of this process again, as a child gets it. */
void out_of_memory_score_inherit(pid_t pid);

#endif
