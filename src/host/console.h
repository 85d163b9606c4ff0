/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent's stdout or stderr as a place for whole lines: a queue in front of a descriptor that
 * may be slow, stopped, or closed. Never blocks, never changes the flags of the descriptor (which
 * the workers and the shell share), and keeps lines whole: what fits into PIPE_BUF is written in
 * one piece. Knows nothing of log files: who is refused comes back later (host/console_feed). */
#ifndef MUSTER_HOST_CONSOLE_H
#define MUSTER_HOST_CONSOLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "host/event_loop.h"

/* Bytes that may wait: workers' lines can be read again from their file, the agent's records not.
 */
#define CONSOLE_LINE_CEILING ((size_t)256 * 1024)
#define CONSOLE_RECORD_CEILING ((size_t)1024 * 1024)

struct console;

struct console_events {
    /* A console that was stalled has taken something, or is found closed. */
    void (*moved)(void *context);
    /* Said once: the console is closed and everything from now on discarded, or (not closed) it
     * could not be written to and what waited is lost. */
    void (*failed)(void *context, int system_error, bool is_closed);
    void *context;
};

/* `fd` stays the caller's and open as long as the console. SIGPIPE must be ignored or blocked. */
__attribute__((warn_unused_result)) enum failure_code console_new(struct event_loop *loop, int fd,
    const struct console_events *events, struct console **out_console, struct failure *failure);
/* Drops what is still queued. Accepts NULL. */
void console_free(struct console *console);

/* Whether writing to `fd` ends up in the same place, so that one queue must serve both. */
bool console_is_same(const struct console *console, int fd);

/* Queues header and line as one; false, with nothing taken, when the console is stalled and full. A
 * closed console takes and discards everything. */
__attribute__((warn_unused_result)) bool console_add_line(
    struct console *console, struct slice header, struct slice line);
/* The same for a record of the agent, which may fill the queue up to CONSOLE_RECORD_CEILING. */
__attribute__((warn_unused_result)) bool console_add_record(
    struct console *console, struct slice record);

/* Writes as much as the descriptor takes now; the rest follows when it takes more. */
void console_flush(struct console *console);

/* Discards the queue. */
void console_drop(struct console *console);

/* Bytes in the queue, and bytes written or discarded in all: progress is that the latter grows. */
size_t console_queued(const struct console *console);
uint64_t console_taken(const struct console *console);
bool console_is_stalled(const struct console *console);
bool console_is_closed(const struct console *console);

#endif
