/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/watchdog/timer_queue.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "host/loop/clock.h"

/* The pipe holds PIPE_SIZE / sizeof(struct record) requests. */
#define PIPE_SIZE (1024 * 1024)

struct record {
    int64_t pid;
    int64_t expiration;
    int32_t kind;
    int32_t signal;
    char scope[TIMER_QUEUE_MAXIMUM_SCOPE + 1];
};
_Static_assert(sizeof(struct record) <= PIPE_BUF, "a record is written as a whole");

struct timer_queue {
    int read_end;
    int write_end;
};

enum failure_code timer_queue_new(struct timer_queue **out_queue, struct failure *failure) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
        return failure_set_system(failure, errno, "cannot make a queue for timers");
    }
    (void)fcntl(ends[1], F_SETPIPE_SZ, PIPE_SIZE); /* on failure the default size works, too */
    struct timer_queue *queue = memory_allocate(sizeof *queue);
    *queue = (struct timer_queue){ends[0], ends[1]};
    *out_queue = queue;
    return FAILURE_NONE;
}

void timer_queue_free(struct timer_queue *queue) {
    if (queue != NULL) {
        if (queue->read_end >= 0) {
            close(queue->read_end);
        }
        close(queue->write_end);
        free(queue);
    }
}

enum failure_code timer_queue_adopt(
    int write_end, struct timer_queue **out_queue, struct failure *failure) {
    struct stat status;
    int flags = fcntl(write_end, F_GETFL);
    if (flags < 0 || (flags & O_ACCMODE) != O_WRONLY || fstat(write_end, &status) != 0 ||
        !S_ISFIFO(status.st_mode)) {
        return failure_set_system(
            failure, EBADF, "descriptor %d is no queue for timers", write_end);
    }
    struct timer_queue *queue = memory_allocate(sizeof *queue);
    *queue = (struct timer_queue){-1, write_end};
    *out_queue = queue;
    return FAILURE_NONE;
}

int timer_queue_read_end(const struct timer_queue *queue) {
    return queue->read_end;
}

int timer_queue_write_end(const struct timer_queue *queue) {
    return queue->write_end;
}

/* Returns false when the time is up. */
static bool wait_until(int fd, short events, struct instant deadline) {
    struct duration left = instant_until(clock_now(), deadline);
    struct pollfd waiting = {.fd = fd, .events = events};
    if (left.nanoseconds <= 0) {
        return false;
    }
    const struct timespec patience = {(time_t)(left.nanoseconds / NANOSECONDS_PER_SECOND),
        left.nanoseconds % NANOSECONDS_PER_SECOND};
    ppoll(&waiting, 1, &patience, NULL);
    return true;
}

/* Who has only the write end outlives the reader; SIGPIPE is not to reach the program. */
static ssize_t write_quietly(int fd, const struct record *record) {
    sigset_t pipe_signal;
    sigset_t before;
    sigset_t pending;
    const struct timespec at_once = {0};
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    sigemptyset(&pending);
    (void)sigpending(&pending);
    bool was_pending = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
    ssize_t written = write(fd, record, sizeof *record);
    int error = errno;
    if (written < 0 && error == EPIPE && !was_pending) {
        while (sigtimedwait(&pipe_signal, NULL, &at_once) < 0 && errno == EINTR) {
        }
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return written;
}

enum failure_code timer_queue_put(struct timer_queue *queue, const struct watchdog_request *request,
    struct duration patience, struct failure *failure) {
    struct record record = {.pid = request->pid,
        .expiration = request->expiration.nanoseconds,
        .kind = (int32_t)request->kind,
        .signal = request->signal};
    struct instant deadline = instant_after(clock_now(), patience);
    if (strlen(request->scope) > TIMER_QUEUE_MAXIMUM_SCOPE) {
        return failure_set(failure, FAILURE_LIMIT, "a timer's scope has at most %d bytes",
            TIMER_QUEUE_MAXIMUM_SCOPE);
    }
    strcpy(record.scope, request->scope);
    while (write_quietly(queue->write_end, &record) < 0) {
        if (errno != EAGAIN && errno != EINTR) {
            return failure_set_system(failure, errno, "cannot write to the queue for timers");
        }
        if (!wait_until(queue->write_end, POLLOUT, deadline)) {
            return failure_set(failure, FAILURE_TIMEOUT, "the queue for timers is full");
        }
    }
    return FAILURE_NONE;
}

size_t timer_queue_size(const struct timer_queue *queue) {
    int bytes = 0;
    (void)ioctl(queue->write_end, FIONREAD, &bytes);
    return (size_t)bytes / sizeof(struct record);
}

static bool take(struct timer_queue *queue,
    void (*visit)(void *context, const struct watchdog_request *request), void *context) {
    struct record record;
    if (read(queue->read_end, &record, sizeof record) != (ssize_t)sizeof record) {
        return false;
    }
    record.scope[TIMER_QUEUE_MAXIMUM_SCOPE] = '\0';
    const struct watchdog_request request = {
        .kind = record.kind == WATCHDOG_RELEASE ? WATCHDOG_RELEASE : WATCHDOG_ACQUIRE,
        .pid = record.pid,
        .scope = record.scope,
        .expiration = {record.expiration},
        .signal = record.signal,
    };
    visit(context, &request);
    return true;
}

size_t timer_queue_get(struct timer_queue *queue, size_t count, struct duration timeout,
    void (*visit)(void *context, const struct watchdog_request *request), void *context) {
    struct instant deadline = instant_after(clock_now(), timeout);
    size_t taken = 0;
    while (taken < count) {
        if (take(queue, visit, context)) {
            taken++;
        } else if (!wait_until(queue->read_end, POLLIN, deadline)) {
            break;
        }
    }
    return taken;
}
