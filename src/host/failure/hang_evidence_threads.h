/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports what the kernel shows of a process and of each of its threads: the state, the current
 * system call, the kernel function in which it waits, and the kernel's stack where permissions
 * allow it. */
#ifndef MUSTER_HOST_FAILURE_HANG_EVIDENCE_THREADS_H
#define MUSTER_HOST_FAILURE_HANG_EVIDENCE_THREADS_H

#include <sys/types.h>

#include "core/failure/hang_summary.h"
#include "host/failure/hang_report.h"

/* Further threads are counted, not described. */
#define HANG_EVIDENCE_MAXIMUM_THREADS 512

/* Adds the threads to the report, and the facts about the process' first thread to the summary. */
void hang_evidence_write_threads(
    struct hang_report *report, pid_t pid, struct hang_summary *out_summary);

#endif
