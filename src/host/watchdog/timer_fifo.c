/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/watchdog/timer_fifo.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "core/workers/line_splitter.h"
#include "host/loop/shared_place.h"

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
