/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the Python stacks of another process from its memory while it runs on. The process is not
 * stopped and does not have to cooperate. Supports builds of CPython 3.13 and 3.14 with a global
 * lock. */
#ifndef MUSTER_HOST_FAILURE_HANG_EVIDENCE_PYTHON_H
#define MUSTER_HOST_FAILURE_HANG_EVIDENCE_PYTHON_H

#include <stdbool.h>
#include <sys/types.h>

#include "host/failure/hang_report.h"

/* Adds the stacks to the report. *out_place becomes the place of the process' first thread, such as
 * "train.py:17 in step", or NULL when it is not known; the caller frees it. Returns false when no
 * stack could be read. If the process is a Python at all, the report then says why, and what is
 * done otherwise: `otherwise`, half a sentence. */
bool hang_evidence_write_python(
    struct hang_report *report, pid_t pid, const char *otherwise, char **out_place);

#endif
