/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/watchdog/snapshot_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <uv.h>

#include "base/memory.h"

#define MAXIMUM_READERS 4
#define PATIENCE_SECONDS 10

/* A connected client, until it has read everything. */
struct reader {
    uv_pipe_t pipe;
    uv_write_t write;
    struct text text;
    struct snapshot_socket *socket; /* NULL after the socket was freed */
    size_t place;
};

struct snapshot_socket {
    uv_pipe_t listener;
    char *path;
    dev_t device; /* identify the file that we created */
    ino_t inode;
    void (*append)(void *context, struct text *out);
    void *context;
    struct reader *readers[MAXIMUM_READERS];
};

/* Paths. */

/* A socket address has room for short paths only. So the path goes through a descriptor of its
 * directory, which the caller closes; -1 and errno on failure. */
static int make_address(const char *path, struct sockaddr_un *out_address) {
    const char *slash = strrchr(path, '/');
    char *directory = slash == NULL ? memory_duplicate_string(".")
                                    : text_format("%.*s", (int)(slash - path) + 1, path);
    int fd = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
    free(directory);
    if (fd < 0) {
        return -1;
    }
    *out_address = (struct sockaddr_un){.sun_family = AF_UNIX};
    int length = snprintf(out_address->sun_path, sizeof out_address->sun_path,
        "/proc/self/fd/%d/%s", fd, slash == NULL ? path : slash + 1);
    if (length >= (int)sizeof out_address->sun_path) {
        close(fd);
        errno = ENAMETOOLONG;
        return -1;
    }
    return fd;
}

static enum failure_code remove_old_socket(const char *path, struct failure *failure) {
    struct stat status;
    if (lstat(path, &status) != 0) {
        return FAILURE_NONE; /* other errors appear when the socket is created */
    }
    if (!S_ISSOCK(status.st_mode) || status.st_uid != geteuid()) {
        return failure_set(failure, FAILURE_INVALID,
            "%s is there already and is no socket of this user; it is left alone", path);
    }
    if (unlink(path) != 0) {
        return failure_set_system(failure, errno, "cannot remove the old socket %s", path);
    }
    return FAILURE_NONE;
}

/* Returns a listening socket at `path`; -1 and errno on failure. */
static int listen_at(const char *path) {
    struct sockaddr_un address;
    int directory = make_address(path, &address);
    if (directory < 0) {
        return -1;
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool is_bound = fd >= 0 && fchmod(fd, 0600) == 0 && /* the file gets the socket's mode */
                    bind(fd, (const struct sockaddr *)&address, sizeof address) == 0;
    int error = errno;
    close(directory);
    if (!is_bound && fd >= 0) {
        close(fd);
    }
    errno = error;
    return is_bound ? fd : -1;
}

/* Server. */

static void free_reader(uv_handle_t *handle) {
    struct reader *reader = handle->data;
    if (reader->socket != NULL) {
        reader->socket->readers[reader->place] = NULL;
    }
    text_clear(&reader->text);
    free(reader);
}

static void written(uv_write_t *write, int status) {
    (void)status; /* a failed write needs no action; the connection is closed in any case */
    struct reader *reader = write->data;
    if (!uv_is_closing((uv_handle_t *)&reader->pipe)) {
        uv_close((uv_handle_t *)&reader->pipe, free_reader);
    }
}

static void send_text(struct reader *reader) {
    struct snapshot_socket *socket = reader->socket;
    socket->append(socket->context, &reader->text);
    uv_buf_t buffer = {.base = reader->text.data, .len = reader->text.length};
    reader->write.data = reader;
    if (reader->text.length == 0 ||
        uv_write(&reader->write, (uv_stream_t *)&reader->pipe, &buffer, 1, written) != 0) {
        uv_close((uv_handle_t *)&reader->pipe, free_reader);
    }
}

static void connected(uv_stream_t *listener, int status) {
    struct snapshot_socket *socket = listener->data;
    struct reader *reader = memory_allocate(sizeof *reader);
    while (reader->place < MAXIMUM_READERS && socket->readers[reader->place] != NULL) {
        reader->place++;
    }
    uv_pipe_init(listener->loop, &reader->pipe, 0); /* cannot fail */
    reader->pipe.data = reader;
    bool is_accepted = status == 0 && uv_accept(listener, (uv_stream_t *)&reader->pipe) == 0;
    if (is_accepted && reader->place < MAXIMUM_READERS) {
        reader->socket = socket;
        socket->readers[reader->place] = reader;
        send_text(reader);
    } else {
        uv_close((uv_handle_t *)&reader->pipe, free_reader);
    }
}

static void free_socket(uv_handle_t *handle) {
    struct snapshot_socket *socket = handle->data;
    free(socket->path);
    free(socket);
}

enum failure_code snapshot_socket_new(struct event_loop *loop, const char *path,
    void (*append)(void *context, struct text *out), void *context,
    struct snapshot_socket **out_socket, struct failure *failure) {
    enum failure_code code = remove_old_socket(path, failure);
    if (code != FAILURE_NONE) {
        return code;
    }
    int fd = listen_at(path);
    if (fd < 0) {
        return failure_set_system(failure, errno, "cannot make the socket %s", path);
    }
    struct snapshot_socket *socket = memory_allocate(sizeof *socket);
    struct stat status = {0};
    socket->path = memory_duplicate_string(path);
    socket->append = append;
    socket->context = context;
    uv_pipe_init(event_loop_uv(loop), &socket->listener, 0); /* cannot fail */
    socket->listener.data = socket;
    int error = uv_pipe_open(&socket->listener, fd);
    if (error == 0) {
        error = uv_listen((uv_stream_t *)&socket->listener, MAXIMUM_READERS, connected);
    } else {
        close(fd);
    }
    if (lstat(path, &status) == 0) {
        socket->device = status.st_dev;
        socket->inode = status.st_ino;
    }
    if (error != 0) {
        snapshot_socket_free(socket);
        return failure_set_system(failure, -error, "cannot listen at %s", path);
    }
    *out_socket = socket;
    return FAILURE_NONE;
}

void snapshot_socket_free(struct snapshot_socket *socket) {
    struct stat status;
    if (socket == NULL) {
        return;
    }
    if (lstat(socket->path, &status) == 0 && status.st_dev == socket->device &&
        status.st_ino == socket->inode) {
        unlink(socket->path);
    }
    for (size_t i = 0; i < MAXIMUM_READERS; i++) {
        struct reader *reader = socket->readers[i];
        if (reader != NULL) {
            reader->socket = NULL;
            if (!uv_is_closing((uv_handle_t *)&reader->pipe)) {
                uv_close((uv_handle_t *)&reader->pipe, free_reader);
            }
        }
    }
    uv_close((uv_handle_t *)&socket->listener, free_socket);
}

/* Client. */

static int connect_to(const char *path) {
    struct sockaddr_un address;
    const struct timeval patience = {.tv_sec = PATIENCE_SECONDS};
    int directory = make_address(path, &address);
    if (directory < 0) {
        return -1;
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is_connected = fd >= 0 &&
                        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0 &&
                        connect(fd, (const struct sockaddr *)&address, sizeof address) == 0;
    int error = errno;
    close(directory);
    if (!is_connected && fd >= 0) {
        close(fd);
    }
    errno = error;
    return is_connected ? fd : -1;
}

/* Takes the whole lines out of what has come. */
static void take_lines(
    struct bytes *come, void (*take)(void *context, struct slice line), void *context) {
    struct slice rest = bytes_slice(come);
    const uint8_t *end;
    while (rest.length > 0 && (end = memchr(rest.data, '\n', rest.length)) != NULL) {
        size_t length = (size_t)(end - rest.data);
        take(context, (struct slice){rest.data, length});
        rest = slice_from(rest, length + 1);
    }
    bytes_consume(come, come->length - rest.length);
}

enum failure_code snapshot_socket_read(const char *path,
    void (*take)(void *context, struct slice line), void *context, struct failure *failure) {
    char chunk[65536];
    ssize_t length;
    struct bytes come = {0};
    bool has_room = true;
    int fd = connect_to(path);
    if (fd < 0) {
        return failure_set_system(failure, errno, "nobody answers at %s", path);
    }
    bytes_init(&come, SNAPSHOT_LINE_MAXIMUM + sizeof chunk);
    while (has_room && (length = read(fd, chunk, sizeof chunk)) > 0) {
        has_room = bytes_append(&come, chunk, (size_t)length) == FAILURE_NONE;
        take_lines(&come, take, context);
        has_room = has_room && come.length <= SNAPSHOT_LINE_MAXIMUM;
    }
    int error = errno;
    close(fd);
    bytes_clear(&come);
    if (!has_room) {
        return failure_set(failure, FAILURE_LIMIT, "%s has a line that is too long", path);
    }
    return length < 0 ? failure_set_system(failure, error, "cannot read from %s", path)
                      : FAILURE_NONE;
}
