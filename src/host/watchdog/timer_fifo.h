/* SPDX-License-Identifier: BSD-3-Clause */
/* The FIFO into which workers write their timer requests. It is read line by line from the event
 * loop. This module does not know what the lines mean.
 *
 * The FIFO is held open for reading and writing, so there is no "last writer": writers may come,
 * go, keep it open or be stopped, and other writers do not notice. A write of at most PIPE_BUF
 * (4096) bytes arrives whole. The unfinished line of a writer comes before the next writer's line;
 * its rest, if it ever comes, is a line of its own. Lines longer than LINE_SPLITTER_CEILING come in
 * pieces. */
#ifndef MUSTER_HOST_WATCHDOG_TIMER_FIFO_H
#define MUSTER_HOST_WATCHDOG_TIMER_FIFO_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "host/loop/event_loop.h"

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

#endif
