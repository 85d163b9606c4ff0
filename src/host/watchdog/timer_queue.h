/* SPDX-License-Identifier: BSD-3-Clause */
/* A bounded queue of timer requests from forked children to their parent: a pipe that the children
 * inherit. Compare MultiprocessingRequestQueue in torch/distributed/elastic/timer/local_timer.py.
 * All requests have the same size in the pipe, so that they can be counted. */
#ifndef MUSTER_HOST_WATCHDOG_TIMER_QUEUE_H
#define MUSTER_HOST_WATCHDOG_TIMER_QUEUE_H

#include <stddef.h>

#include "base/duration.h"
#include "base/failure.h"
#include "core/watchdog/watchdog.h"

/* The longest scope, in bytes. */
#define TIMER_QUEUE_MAXIMUM_SCOPE 479

struct timer_queue;

/* Create it before the children are forked. Each process frees its own copy. */
__attribute__((warn_unused_result)) enum failure_code timer_queue_new(
    struct timer_queue **out_queue, struct failure *failure);
/* Accepts NULL. */
void timer_queue_free(struct timer_queue *queue);

/* The queue of another process, into which this one can only put: `write_end` is a descriptor of
 * its own. FAILURE_SYSTEM with EBADF when it is no pipe that can be written. */
__attribute__((warn_unused_result)) enum failure_code timer_queue_adopt(
    int write_end, struct timer_queue **out_queue, struct failure *failure);

/* -1 for a queue that was adopted. */
int timer_queue_read_end(const struct timer_queue *queue);
int timer_queue_write_end(const struct timer_queue *queue);

/* Puts a request into the queue, from any process. Waits for room when the queue is full.
 * FAILURE_LIMIT for a scope that is too long, FAILURE_TIMEOUT when there was no room for
 * `patience`, FAILURE_SYSTEM with EPIPE when nobody can read it any more; no SIGPIPE is raised. On
 * failure the queue is unchanged. */
__attribute__((warn_unused_result)) enum failure_code timer_queue_put(struct timer_queue *queue,
    const struct watchdog_request *request, struct duration patience, struct failure *failure);

/* The number of requests in the queue. timer_queue_get of that many does not wait, as long as no
 * other process takes some. */
size_t timer_queue_size(const struct timer_queue *queue);

/* Takes up to `count` requests and calls `visit` for each, in order. Waits for them no longer than
 * `timeout` in all, and takes those that have come by then. Returns how many. */
size_t timer_queue_get(struct timer_queue *queue, size_t count, struct duration timeout,
    void (*visit)(void *context, const struct watchdog_request *request), void *context);

#endif
