/* SPDX-License-Identifier: BSD-3-Clause */
/* The work of the log thread, on one event loop and without threads. It reads the workers' pipes in
 * turns, so that a worker that writes much does not starve the others. It passes the bytes to log
 * files, filters and consoles. */
#ifndef MUSTER_HOST_LOG_LOG_ROUTER_H
#define MUSTER_HOST_LOG_LOG_ROUTER_H

#include "base/duration.h"
#include "base/failure.h"
#include "host/loop/event_loop.h"
#include "host/log/log_filter.h"
#include "host/log/log_stream.h"
#include "host/loop/tally.h"

struct log_router;

enum log_console {
    LOG_CONSOLE_NONE,
    LOG_CONSOLE_STDOUT,
    LOG_CONSOLE_STDERR,
};

struct log_router_events {
    /* Reports something the user should know: a full disk, a closed console, lines not shown. */
    void (*warned)(void *context, const char *message);
    /* Answers log_router_drain. */
    void (*drained)(void *context);
    struct tally *bytes; /* counts the bytes read from streams; or NULL */
    void *context;
};

__attribute__((warn_unused_result)) enum failure_code log_router_new(struct event_loop *loop,
    int stdout_fd, int stderr_fd, const struct log_router_events *events,
    struct log_router **out_router, struct failure *failure);
/* Discards what is still open or waiting. Accepts NULL. */
void log_router_free(struct log_router *router);

/* Takes the filter. Streams may use it until the attempt is finished. */
void log_router_add_filter(struct log_router *router, struct log_filter *filter_taken);
/* Takes the stream and begins to read it. Its lines also go to the console and the filter; NULL
 * means none. */
void log_router_add_stream(struct log_router *router, struct log_stream *stream_taken,
    enum log_console console, struct log_filter *filter);
/* Ends all streams and filters: see log_thread_finish_attempt. */
void log_router_finish_attempt(struct log_router *router);

void log_router_write_record(struct log_router *router, enum log_console console, const char *text);

/* Calls `drained` once the consoles have everything, or have taken nothing for `patience`. */
void log_router_drain(struct log_router *router, struct duration patience);

#endif
