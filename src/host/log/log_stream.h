/* SPDX-License-Identifier: BSD-3-Clause */
/* One stream of one worker: the pipe that the worker writes into, its log file, and the other
 * destinations of its lines. It is opened by the module that starts the worker, then given to the
 * log router. From then on it is used only on the router's loop. */
#ifndef MUSTER_HOST_LOG_LOG_STREAM_H
#define MUSTER_HOST_LOG_LOG_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/duration.h"
#include "base/failure.h"
#include "base/text.h"
#include "host/log/console.h"
#include "host/loop/event_loop.h"
#include "host/loop/tally.h"

/* A log file that is appended to. When the disk is full or fails, only the bytes that it did not
 * accept are lost. They are counted, and the next attempt comes after a second at the earliest.
 * Writes may block on the disk, so only the log thread calls this. */

struct log_file {
    int fd;
    char *path;
    uint64_t length; /* bytes written */
    uint64_t lost;   /* bytes the disk did not accept */
    bool is_failing;
    int system_error; /* errno of the last failure, or 0 */
    struct instant retry_at;
};

/* A file that collects the lines (with their headers) that contain one of several needles: the
 * filtered_stdout.log and filtered_stderr.log of an attempt. All ranks share one filter. */

struct log_filter {
    struct log_file file;
    struct text_list needles;
    struct bytes gathered; /* lines of this turn that are not yet written */
    struct log_filter *next;
};

__attribute__((warn_unused_result)) enum failure_code log_filter_open(const char *path,
    const struct text_list *needles, struct log_filter **out_filter, struct failure *failure);
/* Accepts NULL. Gathered lines must have been flushed. */
void log_filter_free(struct log_filter *filter);

struct log_stream {
    struct log_file file;
    int pipe_fd; /* the reading end, non-blocking; -1 once the stream has ended */
    struct event_descriptor *readable;
    char *header;
    struct console_feed *feed; /* NULL: the lines go to the log file only */
    struct console_feed_source source;
    struct log_filter *filter; /* or NULL */
    struct line_splitter splitter;
    uint64_t position;  /* bytes read from the pipe */
    uint64_t given;     /* bytes that have been passed on as lines */
    uint64_t gap_end;   /* bytes before this position may be missing in the file */
    struct instant now; /* time of this turn */
    void *owner;        /* the router, once it has taken the stream */
    struct log_stream *next;
};

/* Creates the pipe and the log file. `*out_fd` is the worker's end: blocking, close-on-exec; the
 * caller closes it. The strings are copied; `feed` is left NULL. FAILURE_SYSTEM names the path. */
__attribute__((warn_unused_result)) enum failure_code log_stream_open(const char *path,
    const char *header, struct log_stream **out_stream, int *out_fd, struct failure *failure);
/* Accepts NULL. The stream must have ended, or must never have been given to a router. */
void log_stream_free(struct log_stream *stream);

/* Reads once into the buffer and passes the bytes on. False at the end of the pipe. */
__attribute__((warn_unused_result)) bool log_stream_read(
    struct log_stream *stream, uint8_t *buffer, size_t size, struct instant now);

/* Reads what the pipe holds at this moment and no more, so that a process that goes on writing
 * cannot keep the caller busy. Then passes on an unfinished last line and closes pipe and file. */
void log_stream_end(struct log_stream *stream, uint8_t *buffer, size_t size, struct instant now);

/* The work of the log thread, on one event loop and without threads. It reads the workers' pipes in
 * turns, so that a worker that writes much does not starve the others. It passes the bytes to log
 * files, filters and consoles. */

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
