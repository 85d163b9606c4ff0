/* SPDX-License-Identifier: BSD-3-Clause */
/* One stream of one worker: a pipe the worker writes into, its log file, and where its lines also
 * go. Opened by whoever starts the worker, then handed to the log router, on whose loop the rest
 * happens. */
#ifndef MUSTER_HOST_LOG_STREAM_H
#define MUSTER_HOST_LOG_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "host/console_feed.h"
#include "host/log_file.h"
#include "host/log_filter.h"

struct log_stream {
    struct log_file file;
    int pipe_fd; /* the reading end, non-blocking; -1 once the stream has ended */
    struct event_descriptor *readable;
    char *header;
    struct console_feed *feed; /* NULL: the lines go nowhere else */
    struct console_feed_source source;
    struct log_filter *filter; /* or NULL */
    struct line_splitter splitter;
    uint64_t position;  /* bytes read from the pipe */
    uint64_t given;     /* bytes that have become lines */
    uint64_t gap_end;   /* bytes before this position may be missing in the file */
    struct instant now; /* of this turn */
    void *owner;        /* the router, once handed over */
    struct log_stream *next;
};

/* Creates the pipe and the log file. `*out_fd` is the worker's end: blocking, close-on-exec, the
 * caller's to close. The strings are copied; `feed` is left NULL. FAILURE_SYSTEM names the path. */
__attribute__((warn_unused_result)) enum failure_code log_stream_open(const char *path,
    const char *header, struct log_stream **out_stream, int *out_fd, struct failure *failure);
/* Lets the worker run further ahead, if the user's quota of pipe memory allows. */
void log_stream_enlarge_pipe(const struct log_stream *stream);
/* Accepts NULL. The stream has ended, or was never handed over. */
void log_stream_free(struct log_stream *stream);

/* Reads what one read() gives into the buffer, and passes it on. False at the end of the pipe. */
__attribute__((warn_unused_result)) bool log_stream_read(
    struct log_stream *stream, uint8_t *buffer, size_t size, struct instant now);

/* Reads what the pipe holds at this moment and no more, so that one who goes on writing cannot keep
 * us here; then gives an unfinished last line and closes pipe and file. */
void log_stream_end(struct log_stream *stream, uint8_t *buffer, size_t size, struct instant now);

#endif
