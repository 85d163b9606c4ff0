/* SPDX-License-Identifier: BSD-3-Clause */
/* A bounded queue of timer requests from forked children to their parent: a pipe that they inherit.
 * Compare MultiprocessingRequestQueue in torch/distributed/elastic/timer/local_timer.py. Requests
 * are of one size on the way, so that how many there are can be told. */
#ifndef MUSTER_HOST_TIMER_QUEUE_H
#define MUSTER_HOST_TIMER_QUEUE_H

#include <stddef.h>

#include "base/duration.h"
#include "base/failure.h"
#include "core/watchdog.h"

/* Longest scope, in bytes. */
#define TIMER_QUEUE_MAXIMUM_SCOPE 479

struct timer_queue;

/* Make it before the children are forked; each process frees its own copy. */
__attribute__((warn_unused_result)) enum failure_code timer_queue_new(
    struct timer_queue **out_queue, struct failure *failure);
/* Accepts NULL. */
void timer_queue_free(struct timer_queue *queue);

/* Puts a request in, from any process. When the queue is full it waits for room. FAILURE_LIMIT for
 * a scope that is too long, FAILURE_TIMEOUT when there was no room for `patience`; then nothing was
 * put in. */
__attribute__((warn_unused_result)) enum failure_code timer_queue_put(struct timer_queue *queue,
    const struct watchdog_request *request, struct duration patience, struct failure *failure);

/* How many requests are there: timer_queue_get of so many does not wait, as long as nobody else
 * takes some. */
size_t timer_queue_size(const struct timer_queue *queue);

/* Takes up to `count` requests and calls `visit` for each, in order. Waits for them no longer than
 * `timeout` in all; what has come by then is taken. Returns how many. */
size_t timer_queue_get(struct timer_queue *queue, size_t count, struct duration timeout,
    void (*visit)(void *context, const struct watchdog_request *request), void *context);

#endif
