/* SPDX-License-Identifier: BSD-3-Clause */
/* One stream of one worker: the pipe that the worker writes into, its log file, and the other
 * destinations of its lines. It is opened by the module that starts the worker, then given to the
 * log router. From then on it is used only on the router's loop. */
#ifndef MUSTER_HOST_LOG_LOG_STREAM_H
#define MUSTER_HOST_LOG_LOG_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "host/log/console_feed.h"
#include "host/log/log_file.h"
#include "host/log/log_filter.h"

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
/* Enlarges the pipe if the user's quota of pipe memory allows, so that the worker seldom waits. */
void log_stream_enlarge_pipe(const struct log_stream *stream);
/* Accepts NULL. The stream must have ended, or must never have been given to a router. */
void log_stream_free(struct log_stream *stream);

/* Reads once into the buffer and passes the bytes on. False at the end of the pipe. */
__attribute__((warn_unused_result)) bool log_stream_read(
    struct log_stream *stream, uint8_t *buffer, size_t size, struct instant now);

/* Reads what the pipe holds at this moment and no more, so that a process that goes on writing
 * cannot keep the caller busy. Then passes on an unfinished last line and closes pipe and file. */
void log_stream_end(struct log_stream *stream, uint8_t *buffer, size_t size, struct instant now);

#endif
