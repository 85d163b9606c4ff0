/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks an installed debugger, py-spy or gdb, for the stacks of another process. The debugger stops
 * the process meanwhile. Its output goes into the report; if it is not installed, the report says
 * so. It is killed when the report's time is up. The debugger becomes a child of this process, so
 * process_family, which waits for orphans, also waits for the debugger. */
#ifndef MUSTER_HOST_FAILURE_HANG_EVIDENCE_TOOL_H
#define MUSTER_HOST_FAILURE_HANG_EVIDENCE_TOOL_H

#include <stdbool.h>
#include <sys/types.h>

#include "host/failure/hang_report.h"

/* Reports the Python stacks of any Python version. If *out_place is NULL and the dump names the
 * place of the main thread, *out_place is set; the caller frees it. */
void hang_evidence_write_py_spy(struct hang_report *report, pid_t pid, char **out_place);

/* Reports the native stacks of all threads. */
void hang_evidence_write_gdb(struct hang_report *report, pid_t pid);

#endif
