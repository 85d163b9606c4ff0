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
#include "core/workers/log_plan.h"
#include "host/loop/clock.h"
#include "host/loop/files.h"

#define FIFO_MODE 0600
#define PARENT_MODE 0700
/* The default size of a pipe. */
#define CHUNK_SIZE 65536
/* The size we ask for: the larger the pipe, the longer a burst of requests finds room without
 * waiting. */
#define PIPE_SIZE (1024 * 1024)
/* This many chunks empty the pipe. A process that writes all the time must not keep us longer. */
#define FULL_PIPE_CHUNKS (PIPE_SIZE / CHUNK_SIZE)

struct timer_fifo {
    struct event_loop *loop;
    char *path;
    int fd;
    dev_t device; /* identify the file that we created */
    ino_t inode;
    struct event_descriptor *watch;
    struct line_splitter splitter;
    struct timer_fifo_reader reader;
    char chunk[CHUNK_SIZE];
};

bool timer_fifo_is_served(const char *path) {
    struct stat status;
    if (lstat(path, &status) != 0 || !S_ISFIFO(status.st_mode)) {
        return false;
    }
    int fd = open(path, O_WRONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0) {
        close(fd);
    }
    return fd >= 0;
}

static enum failure_code remove_old_fifo(const char *path, struct failure *failure) {
    struct stat status;
    if (lstat(path, &status) != 0) {
        return FAILURE_NONE; /* other errors appear when the FIFO is created */
    }
    if (!S_ISFIFO(status.st_mode)) {
        return failure_set(
            failure, FAILURE_INVALID, "%s is there already and is no FIFO; it is left alone", path);
    }
    if (status.st_uid != geteuid()) {
        return failure_set(failure, FAILURE_INVALID,
            "%s is there already and belongs to another user; it is left alone", path);
    }
    if (unlink(path) != 0) {
        return failure_set_system(failure, errno, "cannot remove the old FIFO %s", path);
    }
    return FAILURE_NONE;
}

static enum failure_code make_fifo(
    const char *path, int *out_fd, struct stat *out_status, struct failure *failure) {
    enum failure_code code = remove_old_fifo(path, failure);
    if (code != FAILURE_NONE) {
        return code;
    }
    if (mkfifo(path, FIFO_MODE) != 0) {
        return failure_set_system(failure, errno, "cannot make the FIFO %s", path);
    }
    int fd = open(path, O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, out_status) != 0) {
        int error = errno;
        unlink(path);
        if (fd >= 0) {
            close(fd);
        }
        return failure_set_system(failure, error, "cannot open the FIFO %s", path);
    }
    (void)fcntl(fd, F_SETPIPE_SZ, PIPE_SIZE); /* on failure the default size works, too */
    *out_fd = fd;
    return FAILURE_NONE;
}

static void take_line(void *context, const struct line *line) {
    struct timer_fifo *fifo = context;
    fifo->reader.line(fifo->reader.context, line->text);
}

/* A client may leave out the newline of its last line. A line that is complete without it is
 * offered to the reader at once. */
static void offer_unfinished_line(struct timer_fifo *fifo) {
    const struct text *line = &fifo->splitter.line;
    if (line->length > 0 && line->data[line->length - 1] == '}' &&
        fifo->reader.unfinished_line(
            fifo->reader.context, (struct slice){(const uint8_t *)line->data, line->length})) {
        line_splitter_clear(&fifo->splitter);
    }
}

/* Returns whether there may be more to read. */
static bool take_chunk(struct timer_fifo *fifo) {
    ssize_t length = read(fifo->fd, fifo->chunk, sizeof fifo->chunk);
    if (length > 0) {
        struct slice input = {(const uint8_t *)fifo->chunk, (size_t)length};
        line_splitter_feed(&fifo->splitter, input, take_line, fifo);
        offer_unfinished_line(fifo);
    }
    return length == (ssize_t)sizeof fifo->chunk;
}

/* Reads one chunk per turn, so that a writer that never stops does not block the loop. */
static void readable(void *context) {
    take_chunk(context);
}

static void remove_own_fifo(const struct timer_fifo *fifo);

static void close_fifo(struct timer_fifo *fifo) {
    event_descriptor_free(fifo->watch);
    fifo->watch = NULL;
    if (fifo->fd >= 0) {
        remove_own_fifo(fifo);
        close(fifo->fd);
    }
    fifo->fd = -1;
}

/* The one before goes when the new one is there. */
static enum failure_code open_fifo(struct timer_fifo *fifo, struct failure *failure) {
    struct stat status;
    struct event_descriptor *watch = NULL;
    int fd = -1;
    enum failure_code code = make_fifo(fifo->path, &fd, &status, failure);
    if (code == FAILURE_NONE) {
        code = event_descriptor_new(fifo->loop, fd, readable, fifo, &watch, failure);
    }
    if (code != FAILURE_NONE) {
        if (fd >= 0) {
            unlink(fifo->path);
            close(fd);
        }
        return code;
    }
    close_fifo(fifo);
    fifo->fd = fd;
    fifo->watch = watch;
    fifo->device = status.st_dev;
    fifo->inode = status.st_ino;
    return FAILURE_NONE;
}

enum failure_code timer_fifo_new(struct event_loop *loop, const char *path,
    const struct timer_fifo_reader *reader, struct timer_fifo **out_fifo, struct failure *failure) {
    struct timer_fifo *fifo = memory_allocate(sizeof *fifo);
    fifo->loop = loop;
    fifo->path = memory_duplicate_string(path);
    fifo->fd = -1;
    fifo->reader = *reader;
    enum failure_code code = open_fifo(fifo, failure);
    if (code != FAILURE_NONE) {
        timer_fifo_free(fifo);
        return code;
    }
    *out_fifo = fifo;
    return FAILURE_NONE;
}

enum failure_code timer_fifo_renew(struct timer_fifo *fifo, struct failure *failure) {
    char *parent = memory_duplicate_string(fifo->path);
    char *slash = strrchr(parent, '/');
    enum failure_code code = FAILURE_NONE;
    if (slash != NULL && slash > parent && parent[0] == '/') {
        *slash = '\0';
        code = shared_place_make_directories(parent, PARENT_MODE, failure);
    }
    free(parent);
    return code == FAILURE_NONE ? open_fifo(fifo, failure) : code;
}

void timer_fifo_take_input(struct timer_fifo *fifo) {
    for (int i = 0; i < FULL_PIPE_CHUNKS && take_chunk(fifo); i++) {
    }
}

void timer_fifo_drop_input(struct timer_fifo *fifo) {
    line_splitter_clear(&fifo->splitter);
    for (int i = 0; i < FULL_PIPE_CHUNKS && read(fifo->fd, fifo->chunk, sizeof fifo->chunk) > 0;
         i++) {
    }
}

/* Another one, or another program's, may be there by now. */
static void remove_own_fifo(const struct timer_fifo *fifo) {
    struct stat status;
    if (lstat(fifo->path, &status) == 0 && status.st_dev == fifo->device &&
        status.st_ino == fifo->inode) {
        unlink(fifo->path);
    }
}

void timer_fifo_free(struct timer_fifo *fifo) {
    if (fifo == NULL) {
        return;
    }
    close_fifo(fifo);
    line_splitter_clear(&fifo->splitter);
    free(fifo->path);
    free(fifo);
}

/* Timer queue. */

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
