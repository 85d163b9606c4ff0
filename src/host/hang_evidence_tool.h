/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks a debugger that is installed, py-spy or gdb, for the stacks of another process. Both stop it
 * for that time. What they print goes to the report, as does that one is not installed; they are
 * killed when the report's time is up. The program becomes a child of this process; whoever waits
 * for its orphans (process_family) waits for it. */
#ifndef MUSTER_HOST_HANG_EVIDENCE_TOOL_H
#define MUSTER_HOST_HANG_EVIDENCE_TOOL_H

#include <stdbool.h>
#include <sys/types.h>

#include "host/hang_report.h"

/* Python stacks of any version. *out_place is set where it was NULL and the dump names the place of
 * the main thread; the caller frees it. */
void hang_evidence_write_py_spy(struct hang_report *report, pid_t pid, char **out_place);

/* Native stacks of all threads. */
void hang_evidence_write_gdb(struct hang_report *report, pid_t pid);

#endif
