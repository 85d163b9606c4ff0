/* SPDX-License-Identifier: BSD-3-Clause */
/* Gathers evidence about processes on threads of its own while the loop runs on, and calls back
 * when it has everything or when time is up, whichever comes first. A thread that hangs with what
 * it looks at is left behind: it owns what it works on. */
#ifndef MUSTER_HOST_HANG_EVIDENCE_COLLECTOR_H
#define MUSTER_HOST_HANG_EVIDENCE_COLLECTOR_H

#include <stdbool.h>
#include <stddef.h>

#include "base/duration.h"
#include "base/failure.h"
#include "core/hang_summary.h"
#include "host/event_loop.h"
#include "host/hang_evidence.h"

/* At once, for all that is under way in one collection. */
#define HANG_EVIDENCE_MAXIMUM_COLLECTORS 4

struct hang_evidence_collection;

/* In the order of the requests; borrowed for the call. */
struct hang_evidence_result {
    bool is_finished; /* else time was up first, and nothing is known here */
    struct hang_summary summary;
};

/* What to look at; borrowed, and copied by the function below. */
struct hang_evidence_order {
    const struct hang_evidence_request *requests; /* their end and is_abandoned do not matter */
    size_t count;                                 /* at least 1 */
    struct duration bound;                        /* of time, for all of them together */
    void (*done)(void *context, const struct hang_evidence_result *results, size_t count);
    void *context;
};

/* Begins at once. The loop calls `done` once, never from within this function; the collection may
 * be freed from inside of it. */
__attribute__((warn_unused_result)) enum failure_code hang_evidence_collection_new(
    struct event_loop *loop, const struct hang_evidence_order *order,
    struct hang_evidence_collection **out_collection, struct failure *failure);

/* Also before it is done, which is then never called. Accepts NULL. */
void hang_evidence_collection_free(struct hang_evidence_collection *collection);

#endif
