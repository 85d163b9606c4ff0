/* SPDX-License-Identifier: BSD-3-Clause */
/* Gathers one report about a process that is about to be killed, and about its descendants:
 * everything that can be seen of them. It may take long, it reads other programs' memory, and it
 * may block on a dead disk. Call it only from a thread that nothing depends on
 * (hang_evidence_collector). */
#ifndef MUSTER_HOST_FAILURE_HANG_EVIDENCE_H
#define MUSTER_HOST_FAILURE_HANG_EVIDENCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/duration.h"
#include "core/failure/hang_summary.h"
#include "host/failure/hang_evidence_dump.h"
#include "host/failure/hang_report.h"

/* Reports the open files of a process. Sockets are reported with their state and peer. */

/* Further descriptors are counted, not described. */
#define HANG_EVIDENCE_MAXIMUM_FILES 512

void hang_evidence_write_files(struct hang_report *report, pid_t pid);

/* Reads the Python stacks of another process from its memory while it runs on. The process is not
 * stopped and does not have to cooperate. Supports builds of CPython 3.13 and 3.14 with a global
 * lock. */

/* Adds the stacks to the report. *out_place becomes the place of the process' first thread, such as
 * "train.py:17 in step", or NULL when it is not known; the caller frees it. Returns false when no
 * stack could be read. If the process is a Python at all, the report then says why, and what is
 * done otherwise: `otherwise`, half a sentence. */
bool hang_evidence_write_python(
    struct hang_report *report, pid_t pid, const char *otherwise, char **out_place);

/* Reports what the kernel shows of a process and of each of its threads: the state, the current
 * system call, the kernel function in which it waits, and the kernel's stack where permissions
 * allow it. */

/* Adds the threads to the report, and the facts about the process' first thread to the summary. */
void hang_evidence_write_threads(
    struct hang_report *report, pid_t pid, struct hang_summary *out_summary);

/* Asks an installed debugger, py-spy or gdb, for the stacks of another process. The debugger stops
 * the process meanwhile. Its output goes into the report; if it is not installed, the report says
 * so. It is killed when the report's time is up. The debugger becomes a child of this process, so
 * process_family, which waits for orphans, also waits for the debugger. */

/* Reports the Python stacks of any Python version. If *out_place is NULL and the dump names the
 * place of the main thread, *out_place is set; the caller frees it. */
void hang_evidence_write_py_spy(struct hang_report *report, pid_t pid, char **out_place);

/* Reports the native stacks of all threads. */
void hang_evidence_write_gdb(struct hang_report *report, pid_t pid);

#define HANG_EVIDENCE_OUTPUT_COUNT 2

/* Strings are borrowed. */
struct hang_evidence_request {
    pid_t pid;
    const char *reason;             /* why the process is killed, for the report's heading */
    bool is_full;                   /* ask debuggers, too; they stop the process meanwhile */
    struct hang_evidence_dump dump; /* how the process itself can be asked for its Python stacks */
    const char *path; /* the report is appended to this file; NULL: only the summary is wanted */
    const char *outputs[HANG_EVIDENCE_OUTPUT_COUNT]; /* files that the process writes to, or NULL */
    struct instant end;              /* on clock_now; the look ends at this instant … */
    const atomic_bool *is_abandoned; /* … or when this becomes true; may be NULL */
    /* Called with a borrowed summary each time more is known. The last call has the complete
     * summary. */
    void (*learnt)(void *context, const struct hang_summary *summary);
    void *context;
};

/* Looks at what is in memory before it writes anything, so that a disk that hangs does not delay
 * the summary. Returns false when the time was up before the look was complete. */
bool hang_evidence_collect(const struct hang_evidence_request *request);

#endif
