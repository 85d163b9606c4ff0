/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/log/console.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"

/* The most bytes per write. A pipe accepts that many in one piece, and has room for them when it is
 * writable. */
#define CHUNK_SIZE PIPE_BUF
/* Lines are gathered until this many bytes wait, or until the turn ends. */
#define GATHERED_SIZE ((size_t)64 * 1024)

struct console {
    struct event_loop *loop;
    struct console_events events;
    struct console_outlet outlet;
    int epoll_fd; /* watches the descriptor while it is stalled; libuv itself would set O_NONBLOCK
                       on it */
    struct event_descriptor *writable;
    struct bytes queue;
    size_t start; /* bytes of the queue before this one are already written */
    uint64_t taken;
    bool is_stalled;
    bool is_closed;
    bool has_failed;
};

static enum console_kind kind_of(int fd) {
    struct stat status;
    if (fstat(fd, &status) != 0) {
        return CONSOLE_STREAM; /* the descriptor is not open; the first write will fail */
    }
    if (S_ISSOCK(status.st_mode)) {
        return CONSOLE_SOCKET;
    }
    bool is_stream = S_ISFIFO(status.st_mode) || (S_ISCHR(status.st_mode) && isatty(fd) == 1);
    return is_stream ? CONSOLE_STREAM : CONSOLE_FILE;
}

static int reopen(int fd) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

struct console_outlet console_outlet_open(int fd) {
    enum console_kind kind = kind_of(fd);
    return (struct console_outlet){kind, fd, kind == CONSOLE_STREAM ? reopen(fd) : -1};
}

void console_outlet_close(struct console_outlet *outlet) {
    if (outlet->private_fd >= 0) {
        close(outlet->private_fd);
    }
    outlet->private_fd = -1;
}

int console_outlet_watched(const struct console_outlet *outlet) {
    return outlet->private_fd >= 0 ? outlet->private_fd : outlet->fd;
}

ssize_t console_outlet_write(const struct console_outlet *outlet, const void *data, size_t length) {
    switch (outlet->kind) {
    case CONSOLE_FILE:
        return write(outlet->fd, data, length);
    case CONSOLE_SOCKET:
        return send(outlet->fd, data, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    case CONSOLE_STREAM:
        break;
    }
    if (outlet->private_fd >= 0) {
        return write(outlet->private_fd, data, length);
    }
    struct pollfd poller = {.fd = outlet->fd, .events = POLLOUT};
    if (poll(&poller, 1, 0) == 0) {
        errno = EAGAIN;
        return -1;
    }
    return write(outlet->fd, data, length);
}

static void become_writable(void *context);

enum failure_code console_new(struct event_loop *loop, int fd, const struct console_events *events,
    struct console **out_console, struct failure *failure) {
    struct console *console = memory_allocate(sizeof *console);
    *console =
        (struct console){.loop = loop, .events = *events, .outlet = {.fd = fd, .private_fd = -1}};
    console->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (console->epoll_fd < 0) {
        int error = errno;
        free(console);
        return failure_set_system(failure, error, "cannot watch the console");
    }
    enum failure_code code = event_descriptor_new(
        loop, console->epoll_fd, become_writable, console, &console->writable, failure);
    if (code != FAILURE_NONE) {
        close(console->epoll_fd);
        free(console);
        return code;
    }
    console->outlet = console_outlet_open(fd);
    *out_console = console;
    return FAILURE_NONE;
}

void console_free(struct console *console) {
    if (console == NULL) {
        return;
    }
    event_descriptor_free(console->writable);
    close(console->epoll_fd);
    console_outlet_close(&console->outlet);
    bytes_clear(&console->queue);
    free(console);
}

bool console_is_same(const struct console *console, int fd) {
    struct stat mine;
    struct stat other;
    return console->outlet.fd == fd ||
           (fstat(console->outlet.fd, &mine) == 0 && fstat(fd, &other) == 0 &&
               mine.st_dev == other.st_dev && mine.st_ino == other.st_ino);
}

size_t console_queued(const struct console *console) {
    return console->queue.length - console->start;
}

uint64_t console_taken(const struct console *console) {
    return console->taken;
}

bool console_is_stalled(const struct console *console) {
    return console->is_stalled;
}

bool console_is_closed(const struct console *console) {
    return console->is_closed;
}

void console_drop(struct console *console) {
    console->taken += console_queued(console);
    bytes_clear(&console->queue);
    console->start = 0;
}

/* EIO of a terminal says that it has hung up, that of a file that its disk has failed once. */
static bool is_closed_error(const struct console *console, int error) {
    return error == EPIPE || (error == EIO && console->outlet.kind == CONSOLE_STREAM) ||
           error == EBADF || error == ENXIO || error == ECONNRESET || error == ENOTCONN;
}

static void fail(struct console *console, int error) {
    console->is_closed = is_closed_error(console, error);
    console_drop(console);
    bool is_news = !console->has_failed || console->is_closed;
    console->has_failed = true;
    if (is_news) {
        console->events.failed(console->events.context, error, console->is_closed);
    }
}

/* Asks the loop for one call when the descriptor accepts more. */
static void wait_for_room(struct console *console) {
    struct epoll_event event = {.events = EPOLLOUT | EPOLLONESHOT};
    int fd = console_outlet_watched(&console->outlet);
    int status = epoll_ctl(console->epoll_fd, EPOLL_CTL_MOD, fd, &event);
    if (status != 0 && errno == ENOENT) {
        status = epoll_ctl(console->epoll_fd, EPOLL_CTL_ADD, fd, &event);
    }
    if (status != 0) {
        fail(console, errno);
        return;
    }
    console->is_stalled = true;
}

/* The size of the next write: whole lines up to CHUNK_SIZE, or a part of a longer line. */
static size_t next_chunk(const struct console *console) {
    size_t queued = console_queued(console);
    if (console->outlet.kind == CONSOLE_FILE || queued <= CHUNK_SIZE) {
        return queued;
    }
    const uint8_t *from = console->queue.data + console->start;
    const uint8_t *newline = memrchr(from, '\n', CHUNK_SIZE);
    return newline == NULL ? CHUNK_SIZE : (size_t)(newline - from) + 1;
}

static void forget_written(struct console *console) {
    if (console_queued(console) == 0) {
        if (console->queue.capacity > GATHERED_SIZE) {
            bytes_clear(&console->queue);
        }
        console->queue.length = 0;
        console->start = 0;
    } else if (console->start > console->queue.length / 2) {
        bytes_consume(&console->queue, console->start);
        console->start = 0;
    }
}

void console_flush(struct console *console) {
    while (!console->is_stalled && console_queued(console) > 0) {
        ssize_t written = console_outlet_write(
            &console->outlet, console->queue.data + console->start, next_chunk(console));
        if (written >= 0) {
            console->start += (size_t)written;
            console->taken += (uint64_t)written;
        } else if (errno == EAGAIN) {
            wait_for_room(console);
        } else if (errno != EINTR) {
            fail(console, errno);
        }
    }
    forget_written(console);
}

static void become_writable(void *context) {
    struct console *console = context;
    struct epoll_event event;
    if (epoll_wait(console->epoll_fd, &event, 1, 0) <= 0) {
        return;
    }
    console->is_stalled = false;
    console_flush(console);
    console->events.moved(console->events.context);
}

static bool add(struct console *console, struct slice first, struct slice second, size_t ceiling) {
    size_t length = first.length + second.length;
    if (console_queued(console) + length > GATHERED_SIZE) {
        console_flush(console);
    }
    if (console->is_closed) {
        return true;
    }
    if (console_queued(console) + length > ceiling) {
        return false;
    }
    return bytes_append(&console->queue, first.data, first.length) == FAILURE_NONE &&
           bytes_append(&console->queue, second.data, second.length) == FAILURE_NONE;
}

bool console_add_line(struct console *console, struct slice header, struct slice line) {
    return add(console, header, line, CONSOLE_LINE_CEILING);
}

bool console_add_record(struct console *console, struct slice record) {
    return add(console, record, (struct slice){0}, CONSOLE_RECORD_CEILING);
}
