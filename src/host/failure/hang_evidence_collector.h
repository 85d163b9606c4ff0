/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks at processes on threads of its own while the event loop runs on. Each look is answered when
 * it is complete or when its time is up, whichever comes first. A thread that hangs together with
 * what it looks at is left behind; it owns all its data. */
#ifndef MUSTER_HOST_FAILURE_HANG_EVIDENCE_COLLECTOR_H
#define MUSTER_HOST_FAILURE_HANG_EVIDENCE_COLLECTOR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/failure.h"
#include "core/failure/failure_report.h"
#include "host/failure/hang_evidence.h"
#include "host/loop/event_loop.h"

/* The maximum number of looks at a time. Further looks wait in a queue. */
#define HANG_EVIDENCE_MAXIMUM_COLLECTORS 16
/* The maximum number of threads, including those that hang and were left behind. When all of them
 * hang, no more looks are made. */
#define HANG_EVIDENCE_MAXIMUM_HANGING 64

struct hang_evidence_collector;

/* Borrowed for the call. */
struct hang_evidence_result {
    bool is_complete;            /* else time was up first */
    struct hang_summary summary; /* what is known; zero when nothing is known */
};

/* Called once per look, by the loop, never from within a function below. */
struct hang_evidence_answer {
    void (*looked_at)(void *context, const struct hang_evidence_result *result);
    void *context;
};

__attribute__((warn_unused_result)) enum failure_code hang_evidence_collector_new(
    struct event_loop *loop, struct hang_evidence_collector **out_collector,
    struct failure *failure);

/* Drops all looks. Accepts NULL. Must not be called from within an answer. */
void hang_evidence_collector_free(struct hang_evidence_collector *collector);

/* Begins a look, or queues it. It is answered at the request's end at the latest. The request is
 * copied; its `is_abandoned` and `learnt` are ignored. On failure there is no answer. */
__attribute__((warn_unused_result)) enum failure_code hang_evidence_collector_look(
    struct hang_evidence_collector *collector, const struct hang_evidence_request *request,
    const struct hang_evidence_answer *answer, struct failure *failure);

/* Drops all looks; none of them is answered. */
void hang_evidence_collector_drop(struct hang_evidence_collector *collector);

#endif
