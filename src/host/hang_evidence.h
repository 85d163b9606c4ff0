/* SPDX-License-Identifier: BSD-3-Clause */
/* Everything there is to be seen of a process that is about to be killed, and of what it has
 * started, gathered into one report. It takes its time, reads other programs' memory and may wait
 * on a dead disk: call it from a thread that nothing depends on (hang_evidence_collector). */
#ifndef MUSTER_HOST_HANG_EVIDENCE_H
#define MUSTER_HOST_HANG_EVIDENCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/duration.h"
#include "core/hang_summary.h"

#define HANG_EVIDENCE_OUTPUT_COUNT 2
/* Descendants beyond these are left out. */
#define HANG_EVIDENCE_MAXIMUM_PROCESSES 16

/* Strings are borrowed. */
struct hang_evidence_request {
    pid_t pid;
    const char *reason; /* of the kill, for the report's heading */
    bool is_full;       /* ask debuggers too, which stops the process meanwhile */
    const char *path;   /* of the report, which is appended to; NULL: only the summary is wanted */
    const char *outputs[HANG_EVIDENCE_OUTPUT_COUNT]; /* files it writes to, or NULL */
    struct instant end;              /* of hang_report_now: nobody waits longer … */
    const atomic_bool *is_abandoned; /* … or once this is true; may be NULL */
    /* Called as more is known, with a borrowed summary, for the last time when there is no more. */
    void (*learnt)(void *context, const struct hang_summary *summary);
    void *context;
};

/* What is in memory is looked at before anything is written: a disk that hangs shall not keep the
 * summary from whoever waits for it. False when time was up before everything was looked at. */
bool hang_evidence_collect(const struct hang_evidence_request *request);

#endif
