/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/watchdog/timer_fifo.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "core/workers/line_splitter.h"

#define FIFO_MODE 0600
/* The default size of a pipe. */
#define CHUNK_SIZE 65536
/* The size we ask for: the larger the pipe, the longer a burst of requests finds room without
 * waiting. */
#define PIPE_SIZE (1024 * 1024)
/* This many chunks empty the pipe. A process that writes all the time must not keep us longer. */
#define FULL_PIPE_CHUNKS (PIPE_SIZE / CHUNK_SIZE)

struct timer_fifo {
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

static enum failure_code open_fifo(struct timer_fifo *fifo, struct failure *failure) {
    if (mkfifo(fifo->path, FIFO_MODE) != 0) {
        return failure_set_system(failure, errno, "cannot make the FIFO %s", fifo->path);
    }
    struct stat status;
    fifo->fd = open(fifo->path, O_RDWR | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
    if (fifo->fd < 0 || fstat(fifo->fd, &status) != 0) {
        int error = errno;
        unlink(fifo->path);
        return failure_set_system(failure, error, "cannot open the FIFO %s", fifo->path);
    }
    (void)fcntl(fifo->fd, F_SETPIPE_SZ, PIPE_SIZE); /* on failure the default size works, too */
    fifo->device = status.st_dev;
    fifo->inode = status.st_ino;
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

enum failure_code timer_fifo_new(struct event_loop *loop, const char *path,
    const struct timer_fifo_reader *reader, struct timer_fifo **out_fifo, struct failure *failure) {
    enum failure_code code = remove_old_fifo(path, failure);
    if (code != FAILURE_NONE) {
        return code;
    }
    struct timer_fifo *fifo = memory_allocate(sizeof *fifo);
    fifo->path = memory_duplicate_string(path);
    fifo->fd = -1;
    fifo->reader = *reader;
    code = open_fifo(fifo, failure);
    if (code == FAILURE_NONE) {
        code = event_descriptor_new(loop, fifo->fd, readable, fifo, &fifo->watch, failure);
    }
    if (code != FAILURE_NONE) {
        timer_fifo_free(fifo);
        return code;
    }
    *out_fifo = fifo;
    return FAILURE_NONE;
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
    event_descriptor_free(fifo->watch);
    if (fifo->fd >= 0) {
        remove_own_fifo(fifo);
        close(fifo->fd);
    }
    line_splitter_clear(&fifo->splitter);
    free(fifo->path);
    free(fifo);
}
