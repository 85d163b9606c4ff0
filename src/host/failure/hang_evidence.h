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
#include "core/failure/failure_report.h"
#include "host/failure/hang_report.h"

#define HANG_EVIDENCE_OUTPUT_COUNT 2

/* Strings are borrowed. */
struct hang_evidence_request {
    pid_t pid;
    const char *reason;             /* why the process is killed, for the report's heading */
    bool goes_on;                   /* it is not killed for that reason */
    bool is_brief;                  /* only what the summary has; the process goes on */
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
