/* SPDX-License-Identifier: BSD-3-Clause */
/* How the kernel treats a standby worker: whether it is ended first when memory is short
 * (/proc/PID/oom_score_adj), and for how long it keeps a CPU that a worker wants (sched_setattr).
 * What share of the CPUs it has is its own doing (/proc/self/autogroup), since only it knows when
 * it is done. Where something cannot be set, nothing happens. */
#ifndef MUSTER_HOST_STANDBY_SPARE_TREATMENT_H
#define MUSTER_HOST_STANDBY_SPARE_TREATMENT_H

#include <stdint.h>
#include <sys/types.h>

/* What it was given at its start; a zeroed struct: nothing. */
struct spare_treatment {
    uint64_t slice; /* in nanoseconds; 0: not known */
};

/* The process, which is new, is to be ended before all others, and gives up a CPU at once when
 * another process wants it. A low priority alone does not do that: a process that has got a CPU
 * while it was idle keeps it for a slice of some milliseconds, and a step of training may have many
 * short pauses. Linux 6.12 and newer have shorter slices for those who ask. */
void spare_treatment_begin(pid_t pid, struct spare_treatment *out_treatment);

/* It is treated like a child of this process again, with all its threads. */
void spare_treatment_end(pid_t pid, const struct spare_treatment *treatment);

#endif
