/* SPDX-License-Identifier: BSD-3-Clause */
/* The open files of a process, its sockets with their state and peers. */
#ifndef MUSTER_HOST_HANG_EVIDENCE_FILES_H
#define MUSTER_HOST_HANG_EVIDENCE_FILES_H

#include <sys/types.h>

#include "host/hang_report.h"

/* Descriptors beyond these are counted, not described. */
#define HANG_EVIDENCE_MAXIMUM_FILES 512

void hang_evidence_write_files(struct hang_report *report, pid_t pid);

#endif
