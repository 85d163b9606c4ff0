/* SPDX-License-Identifier: BSD-3-Clause */
/* The client of the timers' FIFO. Users link it into their own programs. So it uses nothing of
 * src/, allocates no memory and never ends the process. */
#include "muster/timer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_PATIENCE 5
/* How often the client looks for a missing server. There is no way to wait for a path. */
#define SEARCH_MILLISECONDS 10
#define NANOSECONDS_PER_SECOND 1000000000LL
/* The maximum length of a timer: about 30 years. */
#define MAXIMUM_SECONDS 1e9

static int64_t read_clock(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * NANOSECONDS_PER_SECOND + now.tv_nsec;
}

static int64_t deadline_of(const struct muster_timer *timer) {
    double patience = timer->patience > 0 ? timer->patience : 0;
    patience = patience < MAXIMUM_SECONDS ? patience : MAXIMUM_SECONDS;
    return read_clock(CLOCK_MONOTONIC) + (int64_t)(patience * (double)NANOSECONDS_PER_SECOND);
}

static int milliseconds_until(int64_t deadline) {
    int64_t left = (deadline - read_clock(CLOCK_MONOTONIC) + 999999) / 1000000;
    return left < 0 ? 0 : left > 1000 ? 1000 : (int)left;
}

/* Finding the server. */

static int open_fifo(const char *path) {
    struct stat status;
    int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && (fstat(fd, &status) != 0 || !S_ISFIFO(status.st_mode))) {
        close(fd);
        errno = ENXIO;
        return -1;
    }
    return fd;
}

static int search(const char *path, int64_t deadline) {
    for (;;) {
        int fd = open_fifo(path);
        if (fd >= 0) {
            return fd;
        }
        int error = errno;
        bool may_come = error == ENOENT || error == ENXIO || error == EINTR;
        if (!may_come || read_clock(CLOCK_MONOTONIC) >= deadline) {
            errno = error;
            return -1;
        }
        poll(NULL, 0, SEARCH_MILLISECONDS);
    }
}

int muster_timer_open(struct muster_timer *timer, const char *path) {
    if (timer == NULL) {
        errno = EINVAL;
        return -1;
    }
    const char *wanted = path != NULL ? path : getenv("TORCHELASTIC_TIMER_FILE");
    timer->signal = SIGKILL;
    timer->patience = DEFAULT_PATIENCE;
    timer->fd = -1;
    timer->path[0] = '\0';
    if (wanted == NULL || *wanted == '\0') {
        errno = ENOENT;
        return -1;
    }
    if (strlen(wanted) >= sizeof timer->path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(timer->path, wanted);
    int fd = search(timer->path, deadline_of(timer));
    if (fd < 0) {
        return -1;
    }
    close(fd);
    return 0;
}

/* Sets errno. A struct that was zeroed and never opened has no path. */
static bool is_open(const struct muster_timer *timer) {
    if (timer == NULL || timer->path[0] == '\0') {
        errno = timer == NULL ? EINVAL : ENOENT;
        return false;
    }
    return true;
}

int muster_timer_keep_open(struct muster_timer *timer) {
    if (!is_open(timer)) {
        return -1;
    }
    if (timer->fd < 0) {
        timer->fd = search(timer->path, deadline_of(timer));
    }
    return timer->fd < 0 ? -1 : 0;
}

void muster_timer_close(struct muster_timer *timer) {
    if (timer != NULL && timer->path[0] != '\0' && timer->fd >= 0) {
        close(timer->fd);
        timer->fd = -1;
    }
}

/* The new server's descriptor replaces the old one under the same number, so that other threads use
 * it, too. */
static int reopen(const struct muster_timer *timer, int old, int64_t deadline) {
    int fd = search(timer->path, deadline);
    if (fd < 0) {
        return -1;
    }
    int result = dup3(fd, old, O_CLOEXEC);
    int error = errno;
    close(fd);
    errno = error;
    return result < 0 ? -1 : 0;
}

/* Writing. */

struct line {
    char data[MUSTER_TIMER_LINE_SIZE];
    size_t length;
    bool is_too_long;
};

/* A write to a FIFO without a reader raises SIGPIPE, which must not reach the caller. */
static ssize_t write_quietly(int fd, const char *line, size_t length) {
    sigset_t pipe_signal;
    sigset_t old_mask;
    sigset_t pending;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_signal, &old_mask);
    ssize_t written = write(fd, line, length);
    int error = errno;
    if (written < 0 && error == EPIPE && sigismember(&old_mask, SIGPIPE) == 0 &&
        sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1) {
        const struct timespec now = {0, 0};
        sigtimedwait(&pipe_signal, NULL, &now);
    }
    pthread_sigmask(SIG_SETMASK, &old_mask, NULL);
    errno = error;
    return written;
}

static int wait_for_room(int fd, int64_t deadline) {
    struct pollfd waiting = {.fd = fd, .events = POLLOUT};
    if (read_clock(CLOCK_MONOTONIC) >= deadline) {
        errno = ETIMEDOUT;
        return -1;
    }
    return poll(&waiting, 1, milliseconds_until(deadline)) < 0 && errno != EINTR ? -1 : 0;
}

/* The kernel writes a line of at most PIPE_BUF bytes as a whole or not at all. */
static int write_line(
    const struct muster_timer *timer, int fd, const struct line *line, int64_t deadline) {
    while (write_quietly(fd, line->data, line->length) < 0) {
        int result = -1;
        if (errno == EAGAIN) {
            result = wait_for_room(fd, deadline);
        } else if (errno == EPIPE) {
            result = reopen(timer, fd, deadline);
        } else if (errno == EINTR) {
            result = 0;
        }
        if (result != 0) {
            return -1;
        }
    }
    return 0;
}

static int send_line(const struct muster_timer *timer, const struct line *line) {
    int64_t deadline = deadline_of(timer);
    if (timer->fd >= 0) {
        return write_line(timer, timer->fd, line, deadline);
    }
    int fd = search(timer->path, deadline);
    if (fd < 0) {
        return -1;
    }
    int result = write_line(timer, fd, line, deadline);
    int error = errno;
    close(fd);
    errno = error;
    return result;
}

/* Spelling. */

static void append(struct line *line, const char *data, size_t length) {
    if (length > sizeof line->data - line->length) {
        line->is_too_long = true;
        return;
    }
    memcpy(line->data + line->length, data, length);
    line->length += length;
}

static void append_word(struct line *line, const char *word) {
    append(line, word, strlen(word));
}

static void append_number(struct line *line, int64_t number) {
    char digits[24];
    int length = snprintf(digits, sizeof digits, "%lld", (long long)number);
    append(line, digits, (size_t)length);
}

static void append_unit(struct line *line, unsigned unit) {
    char escape[8];
    int length = snprintf(escape, sizeof escape, "\\u%04x", unit & 0xffff);
    append(line, escape, (size_t)length);
}

/* Reads the character at the start of `text`, and how many bytes it has. A byte that is not UTF-8
 * gives U+FFFD. */
static uint32_t read_character(const unsigned char *text, size_t *out_length) {
    static const uint32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = text[0] >= 0xf0 ? 4 : text[0] >= 0xe0 ? 3 : 2;
    uint32_t character = text[0] & (0x7fu >> length);
    *out_length = 1;
    if (text[0] < 0xc2 || text[0] > 0xf4) {
        return 0xfffd;
    }
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80) {
            return 0xfffd;
        }
        character = character << 6 | (text[i] & 0x3f);
    }
    bool is_surrogate = character >= 0xd800 && character < 0xe000;
    if (character < smallest[length] || character > 0x10ffff || is_surrogate) {
        return 0xfffd;
    }
    *out_length = length;
    return character;
}

/* Appends a string as Python's json.dumps spells it: ASCII only. */
static void append_string(struct line *line, const char *string) {
    const unsigned char *text = (const unsigned char *)string;
    append_word(line, "\"");
    while (*text != '\0' && !line->is_too_long) {
        size_t length = 1;
        uint32_t character = *text < 0x80 ? *text : read_character(text, &length);
        if (character == '"' || character == '\\') {
            append_word(line, character == '"' ? "\\\"" : "\\\\");
        } else if (character >= 0x20 && character < 0x7f) {
            append(line, (const char *)text, 1);
        } else if (character < 0x10000) {
            append_unit(line, character);
        } else {
            append_unit(line, 0xd7c0 + (character >> 10));
            append_unit(line, 0xdc00 + (character & 0x3ff));
        }
        text += length;
    }
    append_word(line, "\"");
}

/* `expiration` is wall-clock time in nanoseconds; a negative value releases the timer. */
static int send_request(
    const struct muster_timer *timer, long pid, const char *scope, int64_t expiration, int signal) {
    struct line line = {.length = 0};
    if (scope == NULL || pid < 1) {
        errno = EINVAL;
        return -1;
    }
    append_word(&line, "{\"version\": 1, \"pid\": ");
    append_number(&line, pid);
    append_word(&line, ", \"scope_id\": ");
    append_string(&line, scope);
    append_word(&line, ", \"expiration_time\": ");
    if (expiration < 0) {
        append_word(&line, "-1");
    } else {
        char fraction[16];
        append_number(&line, expiration / NANOSECONDS_PER_SECOND);
        int length = snprintf(fraction, sizeof fraction, ".%06u",
            (unsigned)(expiration % NANOSECONDS_PER_SECOND / 1000));
        append(&line, fraction, (size_t)length);
    }
    append_word(&line, ", \"signal\": ");
    append_number(&line, signal);
    append_word(&line, "}\n");
    if (line.is_too_long) {
        errno = EMSGSIZE;
        return -1;
    }
    return send_line(timer, &line);
}

int muster_timer_acquire_for(
    struct muster_timer *timer, long pid, const char *scope, double seconds) {
    if (!is_open(timer)) {
        return -1;
    }
    if (!(seconds >= 0 && seconds <= MAXIMUM_SECONDS)) {
        errno = EINVAL;
        return -1;
    }
    int64_t after = (int64_t)(seconds * (double)NANOSECONDS_PER_SECOND);
    return send_request(timer, pid, scope, read_clock(CLOCK_REALTIME) + after, timer->signal);
}

int muster_timer_release_for(struct muster_timer *timer, long pid, const char *scope) {
    return is_open(timer) ? send_request(timer, pid, scope, -1, 0) : -1;
}

int muster_timer_acquire(struct muster_timer *timer, const char *scope, double seconds) {
    return muster_timer_acquire_for(timer, getpid(), scope, seconds);
}

int muster_timer_release(struct muster_timer *timer, const char *scope) {
    return muster_timer_release_for(timer, getpid(), scope);
}

struct muster_timer_scope muster_timer_scope_begin(
    struct muster_timer *timer, const char *scope, double seconds) {
    struct muster_timer_scope held = {.timer = timer, .scope = scope, .error = 0};
    if (muster_timer_acquire(timer, scope, seconds) != 0) {
        held.error = errno;
    }
    return held;
}

void muster_timer_scope_end(struct muster_timer_scope *scope) {
    int error = errno;
    if (scope != NULL && scope->error == 0) {
        (void)muster_timer_release(scope->timer, scope->scope);
    }
    errno = error;
}
