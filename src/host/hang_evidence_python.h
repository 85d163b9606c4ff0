/* SPDX-License-Identifier: BSD-3-Clause */
/* The Python stacks of another process, read out of its memory while it runs on: it is not stopped,
 * and does not have to do anything. Builds of CPython 3.13 and 3.14 with a global lock. */
#ifndef MUSTER_HOST_HANG_EVIDENCE_PYTHON_H
#define MUSTER_HOST_HANG_EVIDENCE_PYTHON_H

#include <stdbool.h>
#include <sys/types.h>

#include "host/hang_report.h"

/* Adds to the report; *out_place, which the caller frees, is where the process' first thread is:
 * "train.py:17 in step", NULL when that is not known. False when no stack could be read; then the
 * report says why, if this is a Python at all. */
bool hang_evidence_write_python(struct hang_report *report, pid_t pid, char **out_place);

#endif
