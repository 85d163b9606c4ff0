/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/log/log_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/memory.h"

/* A larger pipe lets a worker run on while the disk is busy. All pipes of a user may take 64 MB by
 * default; beyond that new pipes become tiny. So the size must fit hundreds of workers. */
#define PIPE_SIZE (256 * 1024)

static enum failure_code open_pipe(
    const char *path, int *out_read, int *out_write, struct failure *failure) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return failure_set_system(failure, errno, "cannot create the pipe for %s", path);
    }
    if (fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) {
        int error = errno;
        close(ends[0]);
        close(ends[1]);
        return failure_set_system(failure, error, "cannot prepare the pipe for %s", path);
    }
    *out_read = ends[0];
    *out_write = ends[1];
    return FAILURE_NONE;
}

enum failure_code log_stream_open(const char *path, const char *header,
    struct log_stream **out_stream, int *out_fd, struct failure *failure) {
    struct log_file file;
    enum failure_code code = log_file_open(path, &file, failure);
    if (code != FAILURE_NONE) {
        return code;
    }
    int read_fd = -1;
    int write_fd = -1;
    code = open_pipe(path, &read_fd, &write_fd, failure);
    if (code != FAILURE_NONE) {
        log_file_close(&file);
        return code;
    }
    struct log_stream *stream = memory_allocate(sizeof *stream);
    stream->file = file;
    stream->pipe_fd = read_fd;
    stream->header = memory_duplicate_string(header == NULL ? "" : header);
    stream->source = (struct console_feed_source){file.path, stream->header, NULL};
    *out_stream = stream;
    *out_fd = write_fd;
    return FAILURE_NONE;
}

void log_stream_enlarge_pipe(const struct log_stream *stream) {
    /* The kernel refuses this beyond the user's quota; the pipe then keeps its size. */
    (void)fcntl(stream->pipe_fd, F_SETPIPE_SZ, PIPE_SIZE);
}

static void close_pipe(struct log_stream *stream) {
    event_descriptor_free(stream->readable);
    stream->readable = NULL;
    if (stream->pipe_fd >= 0) {
        close(stream->pipe_fd);
        stream->pipe_fd = -1;
    }
}

void log_stream_free(struct log_stream *stream) {
    if (stream == NULL) {
        return;
    }
    close_pipe(stream);
    log_file_close(&stream->file);
    line_splitter_clear(&stream->splitter);
    free(stream->header);
    free(stream);
}

/* Returns the file offset of the byte that was read at `position`, if it is still known. */
static uint64_t place_in_file(const struct log_stream *stream, uint64_t position) {
    if (position < stream->gap_end) {
        return CONSOLE_FEED_NOWHERE;
    }
    return stream->file.length - (stream->position - position);
}

static void pass_line(void *context, const struct line *line) {
    struct log_stream *stream = context;
    if (stream->filter != NULL) {
        log_filter_offer(stream->filter, stream->header, line->text, stream->now);
    }
    uint64_t start = stream->given;
    stream->given += line->raw_length;
    if (stream->feed != NULL) {
        console_feed_line(stream->feed, &stream->source, line, place_in_file(stream, start));
        uint64_t end = place_in_file(stream, stream->given);
        if (end != CONSOLE_FEED_NOWHERE) {
            console_feed_extend(&stream->source, end);
        }
    }
}

static void take(struct log_stream *stream, struct slice bytes) {
    uint64_t lost = stream->file.lost;
    log_file_append(&stream->file, bytes, stream->now);
    stream->position += bytes.length;
    if (stream->file.lost != lost) {
        stream->gap_end = stream->position;
    }
    if (stream->feed != NULL || stream->filter != NULL) {
        line_splitter_feed(&stream->splitter, bytes, pass_line, stream);
    }
}

bool log_stream_read(struct log_stream *stream, uint8_t *buffer, size_t size, struct instant now) {
    ssize_t length = read(stream->pipe_fd, buffer, size);
    if (length < 0) {
        return errno == EAGAIN || errno == EINTR;
    }
    stream->now = now;
    take(stream, (struct slice){buffer, (size_t)length});
    return length > 0;
}

void log_stream_end(struct log_stream *stream, uint8_t *buffer, size_t size, struct instant now) {
    int held = 0;
    if (ioctl(stream->pipe_fd, FIONREAD, &held) != 0) {
        held = 0;
    }
    stream->now = now;
    for (size_t left = (size_t)held; left > 0;) {
        ssize_t length = read(stream->pipe_fd, buffer, left < size ? left : size);
        if (length <= 0) {
            break;
        }
        take(stream, (struct slice){buffer, (size_t)length});
        left -= (size_t)length;
    }
    close_pipe(stream);
    line_splitter_finish(&stream->splitter, pass_line, stream);
    if (stream->feed != NULL) {
        console_feed_end(stream->feed, &stream->source);
    }
}
