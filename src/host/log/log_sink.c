/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/log/log_sink.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/utf8.h"
#include "host/log/console.h"
#include "host/log/log_thread.h"
#include "host/loop/clock.h"

#define USUAL_WIDTH 80

/* The number of columns of the terminal; 0: `fd` is none. */
static int status_line_width(int fd) {
    struct winsize size = {0};
    if (isatty(fd) == 0) {
        return 0;
    }
    return ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : USUAL_WIDTH;
}

static void append_blanks(struct text *out, int count) {
    for (int i = 0; i < count; i++) {
        text_append(out, " ");
    }
}

/* Returns how many columns it takes. The last column stays free, so that no terminal wraps. */
static int append_cut(struct text *out, const char *line, int width) {
    const uint8_t *bytes = (const uint8_t *)line;
    size_t length = strlen(line);
    size_t at = 0;
    int columns = 0;
    while (at < length && columns + 1 < width) {
        at += utf8_character_length(bytes + at, length - at);
        columns++;
    }
    text_append_bytes(out, line, at);
    return columns;
}

/* One line on a terminal that is written over again and again: what stands there now, and the bytes
 * that put another line in its place, or nothing. Uses carriage returns and blanks alone, which
 * every terminal knows. Writes nothing itself. */

/* A zeroed struct: nothing is shown. */
struct status_line {
    int columns; /* that are in use */
};

/* Appends what shows `line`, cut to fewer columns than `width`, in the place of what is shown. Of
 * control characters see utf8_make_line_printable. NULL: what shows nothing, with the cursor at the
 * beginning of the line. Nothing is appended where nothing is to be done. */
static void status_line_show(
    struct status_line *status, const char *line, int width, struct text *out) {
    int before = status->columns;
    status->columns = 0;
    if (line != NULL) {
        char *shown = memory_duplicate_string(line);
        utf8_make_line_printable(shown);
        text_append(out, "\r");
        status->columns = append_cut(out, shown, width);
        append_blanks(out, before - status->columns);
        free(shown);
    } else if (before > 0) {
        text_append(out, "\r");
        append_blanks(out, before);
        text_append(out, "\r");
    }
}

/* Sink. */

/* How long a record or a text waits for a stderr that accepts nothing. */
#define RECORD_PATIENCE_MILLISECONDS 1000
#define TEXT_PATIENCE_MILLISECONDS 5000
#define RETRY_MILLISECONDS 10

struct log_sink {
    struct log log;
    struct console_outlet outlet;
    pthread_mutex_t mutex;     /* protects `thread`, and keeps records whole in direct writing */
    struct log_thread *thread; /* NULL: write directly */
    struct status_line status; /* protected by the same */
    bool is_stuck; /* stderr did not accept anything last time, so it is not waited for again */
};

/* Writes without a log thread. A console that is writable may still have less room than a piece
 * needs, so no write may block either. */
static void write_directly(struct log_sink *sink, const char *text, int patience) {
    size_t left = strlen(text);
    while (left > 0) {
        struct pollfd poller = {.fd = console_outlet_watched(&sink->outlet), .events = POLLOUT};
        sink->is_stuck = poll(&poller, 1, sink->is_stuck ? 0 : patience) == 0;
        if (sink->is_stuck) {
            return;
        }
        ssize_t written =
            console_outlet_write(&sink->outlet, text, left < PIPE_BUF ? left : PIPE_BUF);
        if (written < 0 && errno == EAGAIN) { /* writable, and without room for it */
            patience -= poll(NULL, 0, RETRY_MILLISECONDS) == 0 ? RETRY_MILLISECONDS : 0;
            sink->is_stuck = patience <= 0;
        }
        if (sink->is_stuck || (written < 0 && errno != EINTR && errno != EAGAIN)) {
            return;
        }
        if (written > 0) {
            text += written;
            left -= (size_t)written;
        }
    }
}

static void show(struct log_sink *sink, const char *line, int width) {
    struct text text = {0};
    status_line_show(&sink->status, line, width, &text);
    write_directly(sink, text_string(&text), RECORD_PATIENCE_MILLISECONDS);
    text_clear(&text);
}

bool log_sink_show_status(struct log_sink *sink, const char *line) {
    int width = status_line_width(sink->outlet.fd);
    pthread_mutex_lock(&sink->mutex);
    bool can_be_shown =
        width > 0 && sink->thread == NULL && sink->log.threshold <= LOG_LEVEL_WARNING;
    show(sink, can_be_shown ? line : NULL, width);
    pthread_mutex_unlock(&sink->mutex);
    return can_be_shown && line != NULL;
}

static void write_text(struct log_sink *sink, const char *text, int patience) {
    pthread_mutex_lock(&sink->mutex);
    show(sink, NULL, 0);
    if (sink->thread != NULL) {
        log_thread_write_record(sink->thread, LOG_CONSOLE_STDERR, text);
    } else {
        write_directly(sink, text, patience);
    }
    pthread_mutex_unlock(&sink->mutex);
}

static void write_record(
    void *context, enum log_level level, const char *origin, const char *message) {
    struct log_time time = clock_log_time();
    struct text text = {0};
    log_format(&text, level, &time, getpid(), origin, message);
    write_text(context, text_string(&text), RECORD_PATIENCE_MILLISECONDS);
    text_clear(&text);
}

struct log_sink *log_sink_new(const char *level, int stderr_fd) {
    struct log_sink *sink = memory_allocate(sizeof *sink);
    *sink = (struct log_sink){
        .log = {.threshold = LOG_LEVEL_WARNING, .write = write_record, .context = sink},
        .outlet = console_outlet_open(stderr_fd),
    };
    pthread_mutex_init(&sink->mutex, NULL);
    if (level != NULL && log_parse_level(level, &sink->log.threshold) != FAILURE_NONE) {
        log_warning(&sink->log, "LOGLEVEL is %s, which is no log level: WARNING is used", level);
    }
    return sink;
}

void log_sink_free(struct log_sink *sink) {
    if (sink != NULL) {
        pthread_mutex_destroy(&sink->mutex);
        console_outlet_close(&sink->outlet);
        free(sink);
    }
}

const struct log *log_sink_log(const struct log_sink *sink) {
    return &sink->log;
}

void log_sink_use_thread(struct log_sink *sink, struct log_thread *thread) {
    pthread_mutex_lock(&sink->mutex);
    show(sink, NULL, 0);
    sink->thread = thread;
    pthread_mutex_unlock(&sink->mutex);
}

void log_sink_write_text(struct log_sink *sink, const char *text) {
    write_text(sink, text, TEXT_PATIENCE_MILLISECONDS);
}
