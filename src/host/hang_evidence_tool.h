/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks a debugger that is installed, py-spy or gdb, for the stacks of another process. Both stop it
 * for that time. The program becomes a child of this process; whoever waits for its orphans
 * (process_family) waits for it. */
#ifndef MUSTER_HOST_HANG_EVIDENCE_TOOL_H
#define MUSTER_HOST_HANG_EVIDENCE_TOOL_H

#include <stdbool.h>
#include <sys/types.h>

#include "host/hang_report.h"

enum hang_evidence_tool {
    HANG_EVIDENCE_PY_SPY, /* Python stacks of any version */
    HANG_EVIDENCE_GDB,    /* native stacks of all threads */
};

/* Adds what the program says to the report, and kills it when the report's time is up. False when
 * it is not installed. */
bool hang_evidence_write_tool(struct hang_report *report, enum hang_evidence_tool tool, pid_t pid);

#endif
