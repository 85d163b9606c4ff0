/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks a Python for its stacks. A worker in which Muster's hook runs has told CPython's
 * faulthandler to write the stacks of all threads to the end of its record when a certain signal
 * comes. This module sends the signal, and reads what was written.
 *
 * The signal kills a process that does not expect it. So it is sent only to a child of this process
 * that has a handler for it at that moment, and only to a thread that can take it. A process that
 * has closed the record may have given its number to another file, so it is not asked either.
 *
 * The record is a file in memory (memfd): whoever writes to it never waits for the agent. */
#ifndef MUSTER_HOST_FAILURE_HANG_EVIDENCE_DUMP_H
#define MUSTER_HOST_FAILURE_HANG_EVIDENCE_DUMP_H

#include <stdbool.h>
#include <sys/types.h>

#include "host/failure/hang_report.h"

/* What was agreed with one process. Zero: nothing. */
struct hang_evidence_dump {
    int fd;     /* of the record; the process has the same open file, and appends to it */
    int signal; /* 0: the process was not asked to listen */
};

/* Adds the stacks to the report, or says why the process could not be asked or did not answer. It
 * waits for the answer for a second at most, and for half of the time that the report has left.
 * *out_stack becomes the stack of the process' first thread, with lines such as "train.py:17 in
 * step", or NULL; the caller frees it. Returns false when no stack was told. Does nothing when
 * `dump` has no signal. */
bool hang_evidence_write_dump(
    struct hang_report *report, pid_t pid, const struct hang_evidence_dump *dump, char **out_stack);

#endif
