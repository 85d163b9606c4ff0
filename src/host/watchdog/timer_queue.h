/* SPDX-License-Identifier: BSD-3-Clause */
/* A bounded queue of timer requests from forked children to their parent: a pipe that the children
 * inherit. Compare MultiprocessingRequestQueue in torch/distributed/elastic/timer/local_timer.py.
 * All requests have the same size in the pipe, so that they can be counted. */
#ifndef MUSTER_HOST_WATCHDOG_TIMER_QUEUE_H
#define MUSTER_HOST_WATCHDOG_TIMER_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"
#include "base/duration.h"
#include "base/failure.h"
#include "core/watchdog/watchdog.h"
#include "host/loop/event_loop.h"

/* The FIFO into which workers write their timer requests. It is read line by line from the event
 * loop. This module does not know what the lines mean.
 *
 * The FIFO is held open for reading and writing, so there is no "last writer": writers may come,
 * go, keep it open or be stopped, and other writers do not notice. A write of at most PIPE_BUF
 * (4096) bytes arrives whole. The unfinished line of a writer comes before the next writer's line;
 * its rest, if it ever comes, is a line of its own. Lines longer than LINE_SPLITTER_CEILING come in
 * pieces. */

struct timer_fifo;

/* Whether there is a FIFO at `path` that a process reads. */
bool timer_fifo_is_served(const char *path);

/* Callbacks for the lines, from the event loop. */
struct timer_fifo_reader {
    void (*line)(void *context, struct slice line); /* with a newline at its end */
    /* The last bytes read end in '}' and no newline follows yet. Returns true when it takes them as
     * a line. */
    bool (*unfinished_line)(void *context, struct slice line);
    void *context;
};

/* Creates a FIFO for this user (mode 0600) at `path`. An older FIFO of this user at that path is
 * replaced. FAILURE_INVALID when something else is there, which is left alone; FAILURE_SYSTEM
 * otherwise. */
__attribute__((warn_unused_result)) enum failure_code timer_fifo_new(struct event_loop *loop,
    const char *path, const struct timer_fifo_reader *reader, struct timer_fifo **out_fifo,
    struct failure *failure);

/* Makes the FIFO anew at its path, and the directories above it where they are missing: it was
 * removed, or something else took its place. Fails as timer_fifo_new does; then the old one is read
 * on. Must not be called from inside `line`. */
__attribute__((warn_unused_result)) enum failure_code timer_fifo_renew(
    struct timer_fifo *fifo, struct failure *failure);

/* Gives the reader everything written so far, without waiting for the event loop. Reads at most as
 * much as the FIFO holds, however much is written meanwhile. Must not be called from inside
 * `line`. */
void timer_fifo_take_input(struct timer_fifo *fifo);

/* Drops everything written but not read, and an unfinished line. */
void timer_fifo_drop_input(struct timer_fifo *fifo);

/* Also removes the FIFO, unless something else is at its path by now. Accepts NULL. Must not be
 * called from inside `line`. */
void timer_fifo_free(struct timer_fifo *fifo);

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
