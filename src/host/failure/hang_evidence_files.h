/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports the open files of a process. Sockets are reported with their state and peer. */
#ifndef MUSTER_HOST_FAILURE_HANG_EVIDENCE_FILES_H
#define MUSTER_HOST_FAILURE_HANG_EVIDENCE_FILES_H

#include <sys/types.h>

#include "host/failure/hang_report.h"

/* Further descriptors are counted, not described. */
#define HANG_EVIDENCE_MAXIMUM_FILES 512

void hang_evidence_write_files(struct hang_report *report, pid_t pid);

#endif
