/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/loop/snapshot_socket.h"

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

#define MAXIMUM_READERS 8
/* Who follows stays, and takes nobody's place. */
#define MAXIMUM_FOLLOWERS 8
#define PLACES (MAXIMUM_READERS + MAXIMUM_FOLLOWERS)
#define PATIENCE_SECONDS 10
#define QUESTION_MAXIMUM 4096

/* A connected client, until it has read everything. */
struct reader {
    uv_pipe_t pipe;
    uv_timer_t patience;
    int open_handles;
    uv_write_t write;
    struct text text;
    char question[QUESTION_MAXIMUM];
    size_t asked;
    struct snapshot_question asking;
    enum snapshot_answer progress;
    bool is_waiting;                /* for its answer, or for what comes next */
    bool is_following;              /* it has, since its first piece */
    struct snapshot_socket *socket; /* NULL after the socket was freed */
    size_t place;
};

struct snapshot_socket {
    uv_pipe_t listener;
    char *path;
    dev_t device; /* identify the file that we created */
    ino_t inode;
    void (*append)(void *context, struct text *out);
    enum snapshot_answer (*answer)(
        void *context, struct snapshot_question *question, struct text *out);
    void *context;
    uint64_t last_ticket;
    bool is_waited_for; /* a client waits for a place */
    struct reader *readers[PLACES];
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

static void connected(uv_stream_t *listener, int status);

static void free_reader(uv_handle_t *handle) {
    struct reader *reader = handle->data;
    struct snapshot_socket *socket = reader->socket;
    if (--reader->open_handles > 0) {
        return;
    }
    if (socket != NULL && socket->readers[reader->place] == reader) {
        socket->readers[reader->place] = NULL;
    }
    text_clear(&reader->text);
    free(reader);
    if (socket != NULL && socket->is_waited_for) {
        socket->is_waited_for = false;
        connected((uv_stream_t *)&socket->listener, 0);
    }
}

static void close_reader(struct reader *reader) {
    if (!uv_is_closing((uv_handle_t *)&reader->pipe)) {
        uv_close((uv_handle_t *)&reader->pipe, free_reader);
        uv_close((uv_handle_t *)&reader->patience, free_reader);
    }
}

static void patience_is_over(uv_timer_t *timer) {
    close_reader(timer->data);
}

static void send_text(struct reader *reader);
static void await_more(struct reader *reader);

/* Makes the next piece. */
static void go_on(struct reader *reader) {
    struct snapshot_socket *socket = reader->socket;
    reader->is_waiting = true;
    reader->progress = socket->answer(socket->context, &reader->asking, &reader->text);
    if (reader->progress == SNAPSHOT_FOLLOWED && !reader->is_following) {
        await_more(reader);
    }
    if (reader->progress == SNAPSHOT_FOLLOWED && reader->text.length == 0) {
        uv_timer_stop(&reader->patience); /* it has read everything, and may take its time */
    } else if (reader->progress != SNAPSHOT_LATER) {
        reader->is_waiting = false;
        send_text(reader);
    }
}

static void patience_starts(struct reader *reader) {
    uv_timer_start(&reader->patience, patience_is_over, PATIENCE_SECONDS * UINT64_C(1000), 0);
}

/* One piece in a turn of the loop, whose other work comes between. */
static void next_turn(uv_timer_t *timer) {
    struct reader *reader = timer->data;
    if (reader->socket != NULL) {
        go_on(reader);
    } else {
        close_reader(reader);
    }
}

static void written(uv_write_t *write, int status) {
    struct reader *reader = write->data;
    bool is_over = reader->progress == SNAPSHOT_WHOLE || reader->progress == SNAPSHOT_LATER;
    if (status != 0 || is_over || reader->socket == NULL) {
        close_reader(reader);
        return;
    }
    reader->text.length = 0;
    uv_timer_start(&reader->patience, next_turn, 0, 0);
}

static void send_text(struct reader *reader) {
    uv_buf_t buffer = {.base = reader->text.data, .len = reader->text.length};
    reader->write.data = reader;
    if (!uv_is_closing((uv_handle_t *)&reader->pipe)) {
        patience_starts(reader);
    }
    if (reader->text.length == 0 ||
        uv_write(&reader->write, (uv_stream_t *)&reader->pipe, &buffer, 1, written) != 0) {
        close_reader(reader);
    }
}

static void give_room(uv_handle_t *handle, size_t wanted, uv_buf_t *buffer) {
    struct reader *reader = handle->data;
    (void)wanted;
    *buffer = (uv_buf_t){reader->question + reader->asked, QUESTION_MAXIMUM - 1 - reader->asked};
}

/* The path of "GET /path HTTP/1.1". */
static const char *path_asked(char *question) {
    static const char get[] = "GET ";
    char *path = question + sizeof get - 1;
    if (!text_starts_with(question, get)) {
        return "";
    }
    path[strcspn(path, " \r\n")] = '\0';
    return path;
}

static void asked(uv_stream_t *stream, ssize_t count, const uv_buf_t *buffer) {
    struct reader *reader = stream->data;
    struct snapshot_socket *socket = reader->socket;
    (void)buffer;
    if (count < 0 || socket == NULL) {
        close_reader(reader);
        return;
    }
    reader->asked += (size_t)count;
    reader->question[reader->asked] = '\0';
    bool is_whole =
        strstr(reader->question, "\n\r\n") != NULL || strstr(reader->question, "\n\n") != NULL;
    if (is_whole || reader->asked == QUESTION_MAXIMUM - 1) {
        uv_read_stop(stream);
        reader->asking = (struct snapshot_question){
            .path = is_whole ? path_asked(reader->question) : "", .ticket = ++socket->last_ticket};
        go_on(reader);
    }
}

void snapshot_answer_append(const char *status, struct slice body, struct text *out) {
    text_append_format(out,
        "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nCache-Control: no-store\r\n"
        "Connection: close\r\n\r\n",
        status, text_starts_with(status, "200") ? "application/json" : "text/plain; charset=utf-8",
        body.length);
    text_append_bytes(out, (const char *)body.data, body.length);
}

void snapshot_socket_answer(
    struct snapshot_socket *socket, uint64_t ticket, struct text *text_taken) {
    for (size_t i = 0; i < PLACES; i++) {
        struct reader *reader = socket->readers[i];
        if (reader != NULL && reader->is_waiting && reader->progress == SNAPSHOT_LATER &&
            reader->asking.ticket == ticket && !uv_is_closing((uv_handle_t *)&reader->pipe)) {
            reader->is_waiting = false;
            reader->text = *text_taken;
            *text_taken = (struct text){0};
            send_text(reader);
        }
    }
    text_clear(text_taken);
}

/* Following. */

/* What a follower says is passed over; that it goes is heard. */
static void give_anything(uv_handle_t *handle, size_t wanted, uv_buf_t *buffer) {
    static char nobody_reads_this[1024];
    (void)handle;
    (void)wanted;
    *buffer = (uv_buf_t){nobody_reads_this, sizeof nobody_reads_this};
}

static void said(uv_stream_t *stream, ssize_t count, const uv_buf_t *buffer) {
    (void)buffer;
    if (count < 0) {
        close_reader(stream->data);
    }
}

static size_t count_readers(const struct snapshot_socket *socket, bool are_following) {
    size_t count = 0;
    for (size_t i = 0; i < PLACES; i++) {
        const struct reader *reader = socket->readers[i];
        count += reader != NULL && reader->is_following == are_following ? 1 : 0;
    }
    return count;
}

/* From now on it is a follower, if there is room for one. */
static void await_more(struct reader *reader) {
    struct snapshot_socket *socket = reader->socket;
    if (count_readers(socket, true) == MAXIMUM_FOLLOWERS) {
        reader->text.length = 0;
        text_append_format(&reader->text,
            "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\n\r\n%d follow already\n",
            MAXIMUM_FOLLOWERS);
        reader->progress = SNAPSHOT_WHOLE;
        return;
    }
    reader->is_following = true;
    if (uv_read_start((uv_stream_t *)&reader->pipe, give_anything, said) != 0) {
        close_reader(reader);
    }
    if (socket->is_waited_for) {
        socket->is_waited_for = false;
        connected((uv_stream_t *)&socket->listener, 0);
    }
}

void snapshot_socket_wake(struct snapshot_socket *socket) {
    for (size_t i = 0; i < PLACES; i++) {
        struct reader *reader = socket->readers[i];
        if (reader != NULL && reader->is_following && reader->is_waiting &&
            !uv_is_closing((uv_handle_t *)&reader->pipe)) {
            go_on(reader);
        }
    }
}

/* The directory keeps all others away, and root may come anywhere. */
static bool is_admitted(const struct snapshot_socket *socket, const struct reader *reader) {
    struct ucred who;
    socklen_t size = sizeof who;
    uv_os_fd_t fd;
    return socket->answer == NULL ||
           (uv_fileno((const uv_handle_t *)&reader->pipe, &fd) == 0 &&
               getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 &&
               (who.uid == geteuid() || who.uid == 0));
}

static void serve(struct snapshot_socket *socket, struct reader *reader) {
    reader->socket = socket;
    socket->readers[reader->place] = reader;
    patience_starts(reader);
    if (socket->answer == NULL) {
        socket->append(socket->context, &reader->text);
        send_text(reader);
    } else if (uv_read_start((uv_stream_t *)&reader->pipe, give_room, asked) != 0) {
        close_reader(reader);
    }
}

static void connected(uv_stream_t *listener, int status) {
    struct snapshot_socket *socket = listener->data;
    size_t place = 0;
    while (place < PLACES && socket->readers[place] != NULL) {
        place++;
    }
    if (place == PLACES || count_readers(socket, false) == MAXIMUM_READERS) {
        socket->is_waited_for = true; /* nobody else is accepted meanwhile */
        return;
    }
    struct reader *reader = memory_allocate(sizeof *reader);
    reader->place = place;
    uv_pipe_init(listener->loop, &reader->pipe, 0); /* cannot fail, nor does this: */
    uv_timer_init(listener->loop, &reader->patience);
    reader->open_handles = 2;
    reader->pipe.data = reader->patience.data = reader;
    if (status == 0 && uv_accept(listener, (uv_stream_t *)&reader->pipe) == 0 &&
        is_admitted(socket, reader)) {
        serve(socket, reader);
    } else {
        close_reader(reader);
    }
}

static void free_socket(uv_handle_t *handle) {
    struct snapshot_socket *socket = handle->data;
    free(socket->path);
    free(socket);
}

static enum failure_code open_socket(struct event_loop *loop, const char *path,
    const struct snapshot_socket *owner, struct snapshot_socket **out_socket,
    struct failure *failure) {
    enum failure_code code = remove_old_socket(path, failure);
    if (code != FAILURE_NONE) {
        return code;
    }
    int fd = listen_at(path);
    if (fd < 0) {
        return failure_set_system(failure, errno, "cannot make the socket %s", path);
    }
    struct snapshot_socket *socket = memory_duplicate(owner, sizeof *owner);
    struct stat status = {0};
    socket->path = memory_duplicate_string(path);
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

enum failure_code snapshot_socket_new(struct event_loop *loop, const char *path,
    void (*append)(void *context, struct text *out), void *context,
    struct snapshot_socket **out_socket, struct failure *failure) {
    const struct snapshot_socket owner = {.append = append, .context = context};
    return open_socket(loop, path, &owner, out_socket, failure);
}

enum failure_code snapshot_socket_new_asked(struct event_loop *loop, const char *path,
    enum snapshot_answer (*answer)(
        void *context, struct snapshot_question *question, struct text *out),
    void *context, struct snapshot_socket **out_socket, struct failure *failure) {
    const struct snapshot_socket owner = {.answer = answer, .context = context};
    return open_socket(loop, path, &owner, out_socket, failure);
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
    for (size_t i = 0; i < PLACES; i++) {
        struct reader *reader = socket->readers[i];
        if (reader != NULL) {
            reader->socket = NULL;
            close_reader(reader);
        }
    }
    uv_close((uv_handle_t *)&socket->listener, free_socket);
}

/* Client. */

/* A server whose places are all taken lets others wait for the connection, too. */
static int connect_to(const char *path, struct duration time) {
    struct sockaddr_un address;
    const struct timeval patience = {.tv_sec = time.nanoseconds / NANOSECONDS_PER_SECOND,
        .tv_usec = time.nanoseconds % NANOSECONDS_PER_SECOND / 1000};
    int directory = make_address(path, &address);
    if (directory < 0) {
        return -1;
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is_connected = fd >= 0 &&
                        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience) == 0 &&
                        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) == 0 &&
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

/* False: errno says why it is not said. */
static bool say(int fd, const char *question) {
    size_t length = question != NULL ? strlen(question) : 0;
    return length == 0 || send(fd, question, length, MSG_NOSIGNAL) == (ssize_t)length;
}

static enum failure_code set_error(
    struct failure *failure, int error, const char *what, const char *path) {
    return error == EAGAIN
               ? failure_set(failure, FAILURE_TIMEOUT,
                     "%s %s in time: as many ask as are answered at once, or it stands still", what,
                     path)
               : failure_set_system(failure, error, "%s %s", what, path);
}

enum failure_code snapshot_socket_ask(const char *path, const char *question,
    struct duration patience, int *out_fd, struct failure *failure) {
    int fd = connect_to(path, patience);
    if (fd < 0) {
        return set_error(failure, errno, "nobody answers at", path);
    }
    if (!say(fd, question)) {
        enum failure_code code = set_error(failure, errno, "cannot ask at", path);
        close(fd);
        return code;
    }
    *out_fd = fd;
    return FAILURE_NONE;
}

bool snapshot_socket_take(int fd, struct bytes *come,
    void (*take)(void *context, struct slice line), void *context, int *out_error) {
    char chunk[65536];
    ssize_t length = read(fd, chunk, sizeof chunk);
    *out_error = length < 0 ? errno : 0;
    if (length <= 0) {
        return false;
    }
    bool has_room = bytes_append(come, chunk, (size_t)length) == FAILURE_NONE;
    take_lines(come, take, context);
    *out_error = has_room && come->length <= SNAPSHOT_LINE_MAXIMUM ? 0 : EMSGSIZE;
    return *out_error == 0;
}

enum failure_code snapshot_socket_read(const char *path, const char *question,
    struct duration patience, void (*take)(void *context, struct slice line), void *context,
    struct failure *failure) {
    struct bytes come = {0};
    int error = 0;
    int fd;
    enum failure_code code = snapshot_socket_ask(path, question, patience, &fd, failure);
    if (code != FAILURE_NONE) {
        return code;
    }
    bytes_init(&come, SNAPSHOT_ROOM);
    while (snapshot_socket_take(fd, &come, take, context, &error)) {
    }
    close(fd);
    bytes_clear(&come);
    if (error == EMSGSIZE) {
        return failure_set(failure, FAILURE_LIMIT, "%s has a line that is too long", path);
    }
    return error != 0 ? set_error(failure, error, "cannot read from", path) : FAILURE_NONE;
}
