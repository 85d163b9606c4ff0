/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks at processes on threads of its own while the loop runs on, and calls back for each when
 * everything has been seen or when its time is up, whichever comes first. A thread that hangs with
 * what it looks at is left behind: it owns what it works on. */
#ifndef MUSTER_HOST_HANG_EVIDENCE_COLLECTOR_H
#define MUSTER_HOST_HANG_EVIDENCE_COLLECTOR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/failure.h"
#include "core/hang_summary.h"
#include "host/event_loop.h"
#include "host/hang_evidence.h"

/* Looks at a time; others wait for their turn. */
#define HANG_EVIDENCE_MAXIMUM_COLLECTORS 16
/* Threads there may be, with those that hang and were left behind. When that many hang, nobody
 * looks any more. */
#define HANG_EVIDENCE_MAXIMUM_HANGING 64

struct hang_evidence_collector;

/* Borrowed for the call. */
struct hang_evidence_result {
    bool is_complete;            /* else time was up first */
    struct hang_summary summary; /* what is known; zero: nothing */
};

/* Called once by the loop, never from within a function below. */
struct hang_evidence_answer {
    void (*looked_at)(void *context, const struct hang_evidence_result *result);
    void *context;
};

__attribute__((warn_unused_result)) enum failure_code hang_evidence_collector_new(
    struct event_loop *loop, struct hang_evidence_collector **out_collector,
    struct failure *failure);

/* Drops all looks. Accepts NULL; not from within an answer. */
void hang_evidence_collector_free(struct hang_evidence_collector *collector);

/* Begins a look, or lines it up, which is answered at the request's end at the latest. The request
 * is copied; `is_abandoned` and `learnt` do not matter. On failure there is no answer. */
__attribute__((warn_unused_result)) enum failure_code hang_evidence_collector_look(
    struct hang_evidence_collector *collector, const struct hang_evidence_request *request,
    const struct hang_evidence_answer *answer, struct failure *failure);

/* None of the looks so far is answered. */
void hang_evidence_collector_drop(struct hang_evidence_collector *collector);

#endif
