/* SPDX-License-Identifier: BSD-3-Clause */
/* What the kernel says of a process and of each of its threads: state, the system call it is in,
 * the function of the kernel it waits in, the kernel's stack where that may be read. */
#ifndef MUSTER_HOST_HANG_EVIDENCE_THREADS_H
#define MUSTER_HOST_HANG_EVIDENCE_THREADS_H

#include <sys/types.h>

#include "core/hang_summary.h"
#include "host/hang_report.h"

/* Threads beyond these are counted, not described. */
#define HANG_EVIDENCE_MAXIMUM_THREADS 512

/* Adds to the report; fills in what the summary is to say of the process' first thread. */
void hang_evidence_write_threads(
    struct hang_report *report, pid_t pid, struct hang_summary *out_summary);

#endif
