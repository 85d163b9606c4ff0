/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/log/log_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/memory.h"
#include "core/workers/log_plan.h"

#define RETRY_MILLISECONDS 1000

/* Creates or empties the file; its mode is 0666 less the umask. FAILURE_SYSTEM names the path. */
static enum failure_code log_file_open(
    const char *path, struct log_file *out_file, struct failure *failure) {
    /* O_APPEND: if another program truncates the file to save space, no hole of zeros appears. */
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666);
    if (fd < 0) {
        return failure_set_system(failure, errno, "cannot create the log file %s", path);
    }
    *out_file = (struct log_file){.fd = fd, .path = memory_duplicate_string(path)};
    return FAILURE_NONE;
}

static void note_failure(struct log_file *file, int system_error, struct instant now) {
    file->is_failing = true;
    file->system_error = system_error;
    file->retry_at = instant_after(now, duration_from_milliseconds(RETRY_MILLISECONDS));
}

/* Closes the file. A zeroed struct that was never opened is accepted when its fd is -1. */
static void log_file_close(struct log_file *file) {
    if (file->fd >= 0) {
        close(file->fd);
    }
    file->fd = -1;
    free(file->path);
    file->path = NULL;
}

/* Appends the bytes, or as many as the disk accepts. */
static void log_file_append(struct log_file *file, struct slice bytes, struct instant now) {
    if (file->is_failing && instant_is_before(now, file->retry_at)) {
        file->lost += bytes.length;
        return;
    }
    file->is_failing = false;
    while (bytes.length > 0) {
        ssize_t written = write(file->fd, bytes.data, bytes.length);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written < 0) {
            note_failure(file, errno, now);
            file->lost += bytes.length;
            return;
        }
        file->length += (uint64_t)written;
        bytes.data += written;
        bytes.length -= (size_t)written;
    }
}

/* Filter. */

#define GATHERED_SIZE ((size_t)64 * 1024)

enum failure_code log_filter_open(const char *path, const struct text_list *needles,
    struct log_filter **out_filter, struct failure *failure) {
    struct log_filter *filter = memory_allocate(sizeof *filter);
    enum failure_code code = log_file_open(path, &filter->file, failure);
    if (code != FAILURE_NONE) {
        free(filter);
        return code;
    }
    text_list_add_all(&filter->needles, needles);
    *out_filter = filter;
    return FAILURE_NONE;
}

void log_filter_free(struct log_filter *filter) {
    if (filter == NULL) {
        return;
    }
    log_file_close(&filter->file);
    text_list_clear(&filter->needles);
    bytes_clear(&filter->gathered);
    free(filter);
}

static void gather(struct log_filter *filter, struct slice bytes) {
    if (bytes_append(&filter->gathered, bytes.data, bytes.length) != FAILURE_NONE) {
        filter->file.lost += bytes.length; /* unreachable: the buffer has no ceiling */
    }
}

/* Writes what was gathered. */
static void log_filter_flush(struct log_filter *filter, struct instant now) {
    if (filter->gathered.length > 0) {
        log_file_append(&filter->file, bytes_slice(&filter->gathered), now);
        bytes_clear(&filter->gathered);
    }
}

/* Gathers the line if it matches. */
static void log_filter_offer(
    struct log_filter *filter, const char *header, struct slice line, struct instant now) {
    if (!line_matches(line, &filter->needles)) {
        return;
    }
    gather(filter, slice_from_string(header));
    gather(filter, line);
    if (filter->gathered.length > GATHERED_SIZE) {
        log_filter_flush(filter, now);
    }
}

/* Stream. */

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

/* Enlarges the pipe if the user's quota of pipe memory allows, so that the worker seldom waits. */
static void log_stream_enlarge_pipe(const struct log_stream *stream) {
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

/* Router. */

/* The most bytes read from one worker before the others get their turn. All streams share one
 * buffer. */
#define TURN_SIZE ((size_t)64 * 1024)
/* With more streams than this, pipes keep their size, because each user has a quota of pipe
 * memory. */
#define ENLARGED_STREAMS 64

/* A console and its name. */
struct router_console {
    struct log_router *router;
    struct console_feed *feed;
    const char *name;
};

/* The bytes that disks did not accept in this attempt. */
struct disk_loss {
    int reported_error; /* the errno that was reported already */
    int system_error;
    size_t files;
    uint64_t bytes;
    char *first_path;
};

struct log_router {
    struct event_loop *loop;
    struct log_router_events events;
    struct router_console consoles[2]; /* stdout and stderr */
    size_t console_count;              /* 1 when both lead to the same place */
    struct log_stream *streams;
    size_t stream_count;
    struct log_filter *filters;
    struct disk_loss loss;
    uint8_t *buffer; /* TURN_SIZE bytes; NULL until the first stream */
    struct event_timer *patience_timer;
    struct duration patience;
    uint64_t taken_before; /* the total that consoles had accepted when the patience last began */
    bool is_draining;
};

__attribute__((format(printf, 2, 3))) static void warn(
    const struct log_router *router, const char *format, ...);

static void warn(const struct log_router *router, const char *format, ...) {
    char message[FAILURE_MESSAGE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    router->events.warned(router->events.context, message);
}

/* -- consoles --------------------------------------------------------------------------------- */

static void report_console_loss(struct log_router *router, const struct router_console *console) {
    struct console_feed_loss loss = console_feed_take_loss(console->feed);
    if (loss.lines + loss.records + loss.bytes > 0) {
        warn(router,
            "%s was too slow: %" PRIu64 " lines of workers, %" PRIu64
            " records of the agent and %" PRIu64 " more bytes were not shown",
            console->name, loss.lines, loss.records, loss.bytes);
    }
}

static void finish_drain(struct log_router *router) {
    router->is_draining = false;
    event_timer_stop(router->patience_timer);
    router->events.drained(router->events.context);
}

static void check_consoles(struct log_router *router) {
    bool is_drained = true;
    for (size_t i = 0; i < router->console_count; i++) {
        if (console_feed_is_drained(router->consoles[i].feed)) {
            report_console_loss(router, &router->consoles[i]);
        } else {
            is_drained = false;
        }
    }
    if (is_drained && router->is_draining) {
        finish_drain(router);
    }
}

static void console_moved(void *context) {
    const struct router_console *console = context;
    check_consoles(console->router);
}

static void console_failed(void *context, int system_error, bool is_closed) {
    const struct router_console *console = context;
    if (is_closed) {
        warn(console->router, "%s is closed (%s): nothing more is shown there", console->name,
            failure_system_words(system_error));
    } else {
        warn(console->router, "cannot write to %s: %s", console->name,
            failure_system_words(system_error));
    }
}

static struct console_feed *feed_of(struct log_router *router, enum log_console console) {
    switch (console) {
    case LOG_CONSOLE_NONE:
        break;
    case LOG_CONSOLE_STDOUT:
        return router->consoles[0].feed;
    case LOG_CONSOLE_STDERR:
        return router->consoles[router->console_count - 1].feed;
    }
    return NULL;
}

static enum failure_code open_console(
    struct log_router *router, int fd, const char *name, struct failure *failure) {
    struct router_console *console = &router->consoles[router->console_count];
    console->router = router;
    console->name = name;
    const struct console_feed_events events = {console_moved, console_failed, console};
    enum failure_code code = console_feed_new(router->loop, fd, &events, &console->feed, failure);
    if (code == FAILURE_NONE) {
        router->console_count++;
    }
    return code;
}

/* -- draining --------------------------------------------------------------------------------- */

static uint64_t bytes_taken(const struct log_router *router) {
    uint64_t taken = 0;
    for (size_t i = 0; i < router->console_count; i++) {
        taken += console_feed_taken(router->consoles[i].feed);
    }
    return taken;
}

static void restart_patience(struct log_router *router) {
    router->taken_before = bytes_taken(router);
    event_timer_set(
        router->patience_timer, instant_after(event_loop_now(router->loop), router->patience));
}

static void check_progress(void *context) {
    struct log_router *router = context;
    if (bytes_taken(router) != router->taken_before) {
        restart_patience(router);
        return;
    }
    for (size_t i = 0; i < router->console_count; i++) {
        console_feed_drop(router->consoles[i].feed);
    }
    check_consoles(router);
}

void log_router_drain(struct log_router *router, struct duration patience) {
    router->patience = patience;
    router->is_draining = true;
    restart_patience(router);
    for (size_t i = 0; i < router->console_count; i++) {
        console_feed_flush(router->consoles[i].feed);
    }
    check_consoles(router);
}

/* -- streams ---------------------------------------------------------------------------------- */

/* Reports that a file cannot be written, once per attempt and error, because a full disk affects
 * all files. */
static void notice_disk(struct log_router *router, const struct log_file *file) {
    if (file->is_failing && file->system_error != router->loss.reported_error) {
        router->loss.reported_error = file->system_error;
        warn(router,
            "cannot write the log file %s: %s; the workers go on, and what the disk does not take "
            "is missing there",
            file->path, failure_system_words(file->system_error));
    }
}

static void count_disk_loss(struct disk_loss *loss, const struct log_file *file) {
    if (file->lost == 0) {
        return;
    }
    if (loss->files++ == 0) {
        loss->first_path = memory_duplicate_string(file->path);
        loss->system_error = file->system_error;
    }
    loss->bytes += file->lost;
}

static void report_disk_loss(struct log_router *router) {
    struct disk_loss *loss = &router->loss;
    if (loss->files > 0) {
        warn(router, "%" PRIu64 " bytes are missing in %zu log files, the first of them %s: %s",
            loss->bytes, loss->files, loss->first_path, failure_system_words(loss->system_error));
    }
    free(loss->first_path);
    *loss = (struct disk_loss){0};
}

/* Passes on what was gathered in this turn. */
static void finish_turn(struct log_router *router, struct log_stream *stream) {
    notice_disk(router, &stream->file);
    if (stream->filter != NULL) {
        log_filter_flush(stream->filter, stream->now);
        notice_disk(router, &stream->filter->file);
    }
    if (stream->feed != NULL) {
        console_feed_flush(stream->feed);
    }
}

static void end_stream(struct log_router *router, struct log_stream *stream) {
    uint64_t before = stream->position;
    log_stream_end(stream, router->buffer, TURN_SIZE, event_loop_now(router->loop));
    tally_add(router->events.bytes, stream->position - before);
    finish_turn(router, stream);
    count_disk_loss(&router->loss, &stream->file);
    struct log_stream **link = &router->streams;
    while (*link != stream) {
        link = &(*link)->next;
    }
    *link = stream->next;
    router->stream_count--;
    log_stream_free(stream);
}

static void stream_readable(void *context) {
    struct log_stream *stream = context;
    struct log_router *router = stream->owner;
    uint64_t before = stream->position;
    bool is_open = log_stream_read(stream, router->buffer, TURN_SIZE, event_loop_now(router->loop));
    tally_add(router->events.bytes, stream->position - before);
    if (is_open) {
        finish_turn(router, stream);
    } else {
        end_stream(router, stream);
    }
}

/* New streams go to the end of the list, so that streams also end in the order of the ranks. */
static void append_stream(struct log_router *router, struct log_stream *stream) {
    struct log_stream **link = &router->streams;
    while (*link != NULL) {
        link = &(*link)->next;
    }
    *link = stream;
    router->stream_count++;
}

void log_router_add_filter(struct log_router *router, struct log_filter *filter_taken) {
    filter_taken->next = router->filters;
    router->filters = filter_taken;
}

void log_router_add_stream(struct log_router *router, struct log_stream *stream_taken,
    enum log_console console, struct log_filter *filter) {
    struct log_stream *stream = stream_taken;
    if (router->buffer == NULL) {
        router->buffer = memory_allocate(TURN_SIZE);
    }
    stream->owner = router;
    stream->feed = feed_of(router, console);
    stream->filter = filter;
    append_stream(router, stream);
    if (router->stream_count <= ENLARGED_STREAMS) {
        log_stream_enlarge_pipe(stream);
    }
    struct failure failure;
    enum failure_code code = event_descriptor_new(
        router->loop, stream->pipe_fd, stream_readable, stream, &stream->readable, &failure);
    if (code != FAILURE_NONE) {
        warn(router, "the log file %s stays empty: %s", stream->file.path, failure.message);
        end_stream(router, stream);
    }
}

void log_router_finish_attempt(struct log_router *router) {
    while (router->streams != NULL) {
        end_stream(router, router->streams);
    }
    while (router->filters != NULL) {
        struct log_filter *filter = router->filters;
        router->filters = filter->next;
        count_disk_loss(&router->loss, &filter->file);
        log_filter_free(filter);
    }
    report_disk_loss(router);
    check_consoles(router);
}

void log_router_write_record(
    struct log_router *router, enum log_console console, const char *text) {
    struct console_feed *feed = feed_of(router, console);
    if (feed != NULL) {
        console_feed_record(feed, text);
        console_feed_flush(feed);
    }
}

/* -- the router ------------------------------------------------------------------------------- */

enum failure_code log_router_new(struct event_loop *loop, int stdout_fd, int stderr_fd,
    const struct log_router_events *events, struct log_router **out_router,
    struct failure *failure) {
    struct log_router *router = memory_allocate(sizeof *router);
    router->loop = loop;
    router->events = *events;
    router->patience_timer = event_timer_new(loop, check_progress, router);
    enum failure_code code = open_console(router, stdout_fd, "stdout", failure);
    if (code == FAILURE_NONE && console_feed_is_same(router->consoles[0].feed, stderr_fd)) {
        router->consoles[0].name = "the console";
    } else if (code == FAILURE_NONE) {
        code = open_console(router, stderr_fd, "stderr", failure);
    }
    if (code != FAILURE_NONE) {
        log_router_free(router);
        return code;
    }
    *out_router = router;
    return FAILURE_NONE;
}

void log_router_free(struct log_router *router) {
    if (router == NULL) {
        return;
    }
    log_router_finish_attempt(router);
    for (size_t i = 0; i < router->console_count; i++) {
        console_feed_free(router->consoles[i].feed);
    }
    event_timer_free(router->patience_timer);
    free(router->loss.first_path);
    free(router->buffer);
    free(router);
}
