/* SPDX-License-Identifier: BSD-3-Clause */
/* The FIFO into which workers write their timer requests, read line by line from the event loop.
 * What the lines mean is not its business.
 *
 * The FIFO is held open for reading and writing, so there is no "last writer": writers that come,
 * go, keep it open or are stopped make no difference to the others. A write of at most PIPE_BUF
 * (4096) bytes arrives whole. What a writer leaves unfinished stays in front of the next writer's
 * line, and its rest, if it ever comes, is a line of its own; lines longer than
 * LINE_SPLITTER_CEILING come in pieces. */
#ifndef MUSTER_HOST_TIMER_FIFO_H
#define MUSTER_HOST_TIMER_FIFO_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "host/event_loop.h"

struct timer_fifo;

/* Whether there is a FIFO at `path` that some process reads. */
bool timer_fifo_is_served(const char *path);

/* Who takes the lines, from the event loop. */
struct timer_fifo_reader {
    void (*line)(void *context, struct slice line); /* with a newline at its end */
    /* What was read last ends in '}' and has no newline yet: true when it is taken as a line. */
    bool (*unfinished_line)(void *context, struct slice line);
    void *context;
};

/* Makes a FIFO for this user (mode 0600) at `path`, in place of one of this user's that may be
 * there already. FAILURE_INVALID when something else is there, which is left alone; FAILURE_SYSTEM
 * otherwise. */
__attribute__((warn_unused_result)) enum failure_code timer_fifo_new(struct event_loop *loop,
    const char *path, const struct timer_fifo_reader *reader, struct timer_fifo **out_fifo,
    struct failure *failure);

/* Gives the reader what has been written so far, without waiting for the event loop's turn; not
 * from inside `line`. At most as much as the FIFO holds, whatever is written meanwhile. */
void timer_fifo_take_input(struct timer_fifo *fifo);

/* Drops what was written and has not been read, and a line that is not finished. */
void timer_fifo_drop_input(struct timer_fifo *fifo);

/* Also removes the FIFO, unless something else is at its path by now. Accepts NULL; not from inside
 * `line`. */
void timer_fifo_free(struct timer_fifo *fifo);

#endif
