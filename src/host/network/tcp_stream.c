/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/network/tcp_stream.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"

/* Probes per timeout: one of them may be lost on the way. */
#define PROBES 3
#define KERNEL_SECONDS_CEILING 32767
/* Where the silence is watched, the kernel ends a connection only after so many timeouts. */
#define WATCHED_TIMEOUTS 3

static void set_option(int fd, int level, int option, int value) {
    (void)setsockopt(fd, level, option, &value,
        sizeof value); /* a failure is ignored: only the detection gets worse */
}

static void end_after(int fd, int64_t milliseconds) {
    set_option(
        fd, IPPROTO_TCP, TCP_USER_TIMEOUT, milliseconds > INT_MAX ? INT_MAX : (int)milliseconds);
}

/* Probes an idle connection every so many seconds, as far as the kernel can. */
static void probe(int fd, int64_t seconds) {
    if (seconds < 1) {
        seconds = 1;
    } else if (seconds > KERNEL_SECONDS_CEILING) {
        seconds = KERNEL_SECONDS_CEILING;
    }
    set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, (int)seconds);
    set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, (int)seconds);
    set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, PROBES - 1);
}

void tcp_silence_limit(int fd, struct duration timeout) {
    int64_t milliseconds = duration_milliseconds_ceiling(timeout);
    probe(fd, milliseconds / 1000 / PROBES);
    end_after(fd, milliseconds);
}

void tcp_silence_watch(int fd, struct duration timeout) {
    int64_t milliseconds = duration_milliseconds_ceiling(timeout);
    probe(fd, 1);
    end_after(fd, milliseconds > INT_MAX ? INT_MAX : milliseconds * WATCHED_TIMEOUTS);
    set_option(fd, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, 1);
}

void tcp_silence_leave(int fd, struct duration timeout) {
    end_after(fd, duration_milliseconds_ceiling(timeout));
}

struct connection_hearing tcp_silence_measure(int fd) {
    struct tcp_info info = {0};
    socklen_t length = sizeof info;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0) {
        return (struct connection_hearing){0};
    }
    uint32_t milliseconds = info.tcpi_last_ack_recv < info.tcpi_last_data_recv
                                ? info.tcpi_last_ack_recv
                                : info.tcpi_last_data_recv;
    return (struct connection_hearing){
        duration_from_milliseconds(milliseconds), info.tcpi_total_retrans};
}

bool tcp_silence_is(int system_error) {
    switch (system_error) {
    case ETIMEDOUT:
    case EHOSTUNREACH:
    case EHOSTDOWN:
    case ENETUNREACH:
    case ENETDOWN:
        return true;
    default:
        return false;
    }
}

/* Tcp stream. */

/* The receive buffer. A long message is received in pieces of this size, one per turn. */
#define READ_SIZE ((size_t)65536)
/* What the owner makes of a message takes no more than so many times its length, and as much again
 * for the places of its parts, which are so many bytes at most where the parts are short. */
#define MESSAGE_FACTOR 3
#define PARTS_BYTES ((size_t)2 << 20)

void tcp_stream_pool_init(struct tcp_stream_pool *pool, const struct tcp_stream_owner *owner,
    size_t queue_ceiling, size_t buffer_ceiling) {
    *pool = (struct tcp_stream_pool){.owner = owner,
        .queue_ceiling = queue_ceiling,
        .buffer_ceiling = buffer_ceiling,
        .turn_bytes = READ_SIZE,
        .held_above = SIZE_MAX,
        .read_buffer = memory_reallocate(NULL, READ_SIZE)}; /* mostly the first page is used */
}

void tcp_stream_pool_clear(struct tcp_stream_pool *pool) {
    free(pool->read_buffer);
    *pool = (struct tcp_stream_pool){0};
}

static void clear_buffer(struct tcp_stream *stream, struct bytes *buffer) {
    stream->pool->buffered_bytes -= buffer->capacity;
    bytes_clear(buffer);
}

/* The capacity that a buffer gets which needs more: twice as much as before, so that many small
 * pieces stay cheap, but not more than the message that is being received. */
static size_t next_capacity(
    const struct tcp_stream *stream, const struct bytes *buffer, size_t needed) {
    size_t twice = buffer->capacity * 2;
    bool is_message = buffer == &stream->input && stream->input_needed >= needed;
    if (is_message && twice > stream->input_needed) {
        return stream->input_needed;
    }
    return twice > needed ? twice : needed;
}

static bool has_room(const struct tcp_stream_pool *pool, size_t wanted) {
    return wanted <= pool->buffer_ceiling && pool->buffered_bytes <= pool->buffer_ceiling - wanted;
}

/* FAILURE_LIMIT when the buffers would grow beyond the pool's ceiling. */
static enum failure_code grow(struct tcp_stream *stream, struct bytes *buffer, size_t needed) {
    struct tcp_stream_pool *pool = stream->pool;
    size_t before = buffer->capacity;
    size_t capacity = next_capacity(stream, buffer, needed);
    if (!has_room(pool, capacity - before)) {
        capacity = needed;
    }
    if (!has_room(pool, capacity - before) && pool->owner->make_room != NULL) {
        pool->owner->make_room(stream, capacity - before);
    }
    if (!has_room(pool, capacity - before)) {
        return FAILURE_LIMIT;
    }
    enum failure_code code = bytes_grow(buffer, capacity);
    pool->buffered_bytes += buffer->capacity - before;
    return code;
}

/* FAILURE_LIMIT as grow. */
static enum failure_code append_to_buffer(
    struct tcp_stream *stream, struct bytes *buffer, const uint8_t *data, size_t length) {
    size_t needed = buffer->length + length;
    enum failure_code code =
        needed > buffer->capacity ? grow(stream, buffer, needed) : FAILURE_NONE;
    return code == FAILURE_NONE ? bytes_append(buffer, data, length) : code;
}

static void handle_closed(uv_handle_t *handle) {
    struct tcp_stream *stream = handle->data;
    stream->pool->owner->released(stream);
}

void tcp_stream_close(struct tcp_stream *stream) {
    if (stream->is_closed) {
        return;
    }
    stream->is_closed = true;
    clear_buffer(stream, &stream->input);
    clear_buffer(stream, &stream->output);
    uv_close((uv_handle_t *)&stream->poll, handle_closed);
    close(stream->fd);
}

static void end(struct tcp_stream *stream, const struct failure *failure) {
    tcp_stream_close(stream);
    stream->pool->owner->ended(stream, failure);
}

static void end_by_error(struct tcp_stream *stream, int error) {
    struct failure failure = {0};
    failure_set(&failure, FAILURE_DISCONNECTED, "%s", failure_system_words(error));
    failure.system_error = error;
    end(stream, &failure);
}

static void end_by_queue(struct tcp_stream *stream) {
    struct failure failure = {0};
    failure_set(&failure, FAILURE_LIMIT, "it has not read more than %zu bytes that wait for it",
        stream->pool->queue_ceiling);
    end(stream, &failure);
}

static void end_by_memory(struct tcp_stream *stream) {
    struct failure failure = {0};
    failure_set(&failure, FAILURE_LIMIT,
        "unfinished input and unread output would pass the %zu bytes of memory left for them",
        stream->pool->buffer_ceiling);
    end(stream, &failure);
}

static void end_by_exhaustion(struct tcp_stream *stream) {
    struct failure failure = {0};
    failure_set(&failure, FAILURE_SYSTEM, "there is no memory for what it sends");
    failure.system_error = ENOMEM;
    end(stream, &failure);
}

/* Whether there is memory to receive and to handle a message of so many bytes. */
static bool has_memory(size_t length) {
    size_t parts = length < PARTS_BYTES ? length : PARTS_BYTES;
    return length <= SIZE_MAX - parts && spare_memory_is_enough_for(length + parts, MESSAGE_FACTOR);
}

static void watch(struct tcp_stream *stream);

/* Passes input on and stores what the owner did not consume. */
static void deliver_fresh(struct tcp_stream *stream, struct slice input) {
    size_t needed = 0;
    size_t consumed = stream->pool->owner->received(stream, input, &needed);
    if (stream->is_closed || consumed == input.length) {
        return;
    }
    stream->input_needed = needed;
    if (append_to_buffer(stream, &stream->input, input.data + consumed, input.length - consumed) !=
        FAILURE_NONE) {
        end_by_memory(stream);
    }
}

/* Passes on what is stored. */
static void deliver_stored(struct tcp_stream *stream) {
    if (stream->input.length == 0 || stream->input.length < stream->input_needed) {
        return;
    }
    size_t needed = 0;
    size_t consumed = stream->pool->owner->received(stream, bytes_slice(&stream->input), &needed);
    if (stream->is_closed) {
        return;
    }
    stream->input_needed = needed;
    bytes_consume(&stream->input, consumed);
    if (stream->input.length == 0) {
        clear_buffer(stream, &stream->input);
    }
}

/* As deliver_fresh, when earlier input is stored already. */
static void deliver_more(struct tcp_stream *stream, struct slice input) {
    if (append_to_buffer(stream, &stream->input, input.data, input.length) != FAILURE_NONE) {
        end_by_memory(stream);
        return;
    }
    deliver_stored(stream);
}

/* How many bytes a message that has begun to arrive still needs. */
static size_t missing(const struct tcp_stream *stream) {
    return stream->input_needed > stream->input.length && stream->input.length > 0
               ? stream->input_needed - stream->input.length
               : 0;
}

/* Receives at most that many bytes, and not more than the receive buffer holds. Returns their
 * number; 0 when there were none or the stream has ended. Whether there is memory is asked where
 * the buffer grows or a message may be handled, not at each of the many parts of a long one. */
static size_t receive(struct tcp_stream *stream, size_t wanted) {
    uint8_t *buffer = stream->pool->read_buffer;
    size_t most = stream->input.length + READ_SIZE;
    bool is_part = most < stream->input_needed && most <= stream->input.capacity;
    if (!is_part && !has_memory(most)) {
        end_by_exhaustion(stream);
        return 0;
    }
    ssize_t length = recv(stream->fd, buffer, wanted < READ_SIZE ? wanted : READ_SIZE, 0);
    if (length < 0) {
        if (errno != EAGAIN && errno != EINTR) {
            end_by_error(stream, errno);
        }
        return 0;
    }
    if (length == 0) {
        struct failure failure = {0};
        failure_set(&failure, FAILURE_DISCONNECTED, "closed by the peer");
        end(stream, &failure);
        return 0;
    }
    struct slice input = {buffer, (size_t)length};
    if (stream->input.length == 0) {
        deliver_fresh(stream, input);
    } else {
        deliver_more(stream, input);
    }
    return stream->is_closed ? 0 : (size_t)length;
}

/* Receives a turn's bytes. When they end within a longer message, the rest of it follows at once,
 * as far as one receive buffer goes. */
static void receive_turn(struct tcp_stream *stream) {
    size_t turn_bytes = stream->pool->turn_bytes;
    size_t wanted = missing(stream) > turn_bytes ? missing(stream) : turn_bytes;
    size_t length = receive(stream, wanted);
    if (length == turn_bytes && !stream->is_held && missing(stream) > 0) {
        (void)receive(stream, missing(stream));
    }
}

/* Returns the number of bytes that the kernel accepted. Ends the stream on an error. */
static size_t send_now(
    struct tcp_stream *stream, const uint8_t *data, size_t length, bool is_followed) {
    ssize_t sent = send(stream->fd, data, length, MSG_NOSIGNAL | (is_followed ? MSG_MORE : 0));
    if (sent >= 0) {
        return (size_t)sent;
    }
    if (errno != EAGAIN && errno != EINTR) {
        end_by_error(stream, errno);
    }
    return 0;
}

static void queue(struct tcp_stream *stream, const uint8_t *data, size_t length) {
    struct tcp_stream_pool *pool = stream->pool;
    if (stream->output_sent > stream->output.length / 2) {
        bytes_consume(&stream->output, stream->output_sent);
        stream->output_sent = 0;
    }
    size_t unsent = stream->output.length - stream->output_sent;
    if (length > pool->queue_ceiling || unsent > pool->queue_ceiling - length) {
        end_by_queue(stream);
        return;
    }
    bool was_empty = stream->output.length == 0;
    if (append_to_buffer(stream, &stream->output, data, length) != FAILURE_NONE) {
        end_by_memory(stream);
        return;
    }
    if (was_empty) {
        watch(stream);
    }
}

static void send_or_queue(struct tcp_stream *stream, struct slice data, bool is_followed) {
    if (stream->is_closed || data.length == 0) {
        return;
    }
    size_t sent = 0;
    if (stream->output.length == 0 && !stream->is_connecting) {
        sent = send_now(stream, data.data, data.length, is_followed);
    }
    if (sent < data.length && !stream->is_closed) {
        queue(stream, data.data + sent, data.length - sent);
    }
}

void tcp_stream_send(struct tcp_stream *stream, struct slice data) {
    send_or_queue(stream, data, false);
}

void tcp_stream_send_ahead(struct tcp_stream *stream, struct slice data) {
    send_or_queue(stream, data, true);
}

size_t tcp_stream_unsent(const struct tcp_stream *stream) {
    return stream->output.length - stream->output_sent;
}

static bool may_go_on(const struct tcp_stream *stream) {
    return tcp_stream_unsent(stream) <= stream->pool->held_above;
}

/* Watching for room to send gives a held stream its next turn: at once when there is room, and else
 * when the peer has read. */
void tcp_stream_hold(struct tcp_stream *stream) {
    if (!stream->is_closed) {
        stream->is_held = true;
        watch(stream);
    }
}

static void go_on(struct tcp_stream *stream) {
    stream->is_held = false;
    deliver_stored(stream);
    if (!stream->is_closed && !stream->is_held) {
        watch(stream);
    }
}

bool tcp_stream_is_drained(const struct tcp_stream *stream) {
    return stream->output.length == 0;
}

static void flush(struct tcp_stream *stream) {
    struct bytes *output = &stream->output;
    stream->output_sent += send_now(
        stream, output->data + stream->output_sent, output->length - stream->output_sent, false);
    if (stream->is_closed || stream->output_sent < output->length) {
        return;
    }
    clear_buffer(stream, output);
    stream->output_sent = 0;
    watch(stream);
    if (stream->pool->owner->drained != NULL) {
        stream->pool->owner->drained(stream);
    }
}

static void finish_connecting(struct tcp_stream *stream) {
    int error = 0;
    socklen_t length = sizeof error;
    getsockopt(stream->fd, SOL_SOCKET, SO_ERROR, &error, &length);
    if (error != 0) {
        end_by_error(stream, error);
        return;
    }
    stream->is_connecting = false;
    watch(stream);
    stream->pool->owner->connected(stream);
}

static void socket_ready(uv_poll_t *handle, int status, int events) {
    struct tcp_stream *stream = handle->data;
    bool was_held = stream->is_held;
    if (stream->is_connecting) {
        finish_connecting(stream);
        return;
    }
    if (status < 0 || (!was_held && (events & UV_READABLE) != 0)) {
        receive_turn(stream);
    }
    if (status < 0 && !stream->is_closed) {
        watch(stream); /* libuv stopped watching, but there was more to read before the error */
    }
    if (!stream->is_closed && stream->output.length > 0 && (events & UV_WRITABLE) != 0) {
        flush(stream);
    }
    if (!stream->is_closed && was_held && may_go_on(stream) && (events & UV_WRITABLE) != 0) {
        go_on(stream);
    }
}

static void watch(struct tcp_stream *stream) {
    int events = stream->is_connecting || stream->is_held ? 0 : UV_READABLE;
    if (stream->is_connecting || stream->is_held || stream->output.length > 0) {
        events |= UV_WRITABLE;
    }
    uv_poll_start(&stream->poll, events, socket_ready);
}

enum failure_code tcp_stream_open(struct tcp_stream *stream, struct event_loop *loop,
    struct tcp_stream_pool *pool, int fd, bool is_connecting, struct failure *failure) {
    *stream = (struct tcp_stream){.pool = pool, .fd = fd, .is_connecting = is_connecting};
    int status = event_loop_init_poll(loop, &stream->poll, fd);
    if (status != 0) {
        return failure_set_system(failure, -status, "cannot watch a connection");
    }
    stream->poll.data = stream;
    watch(stream);
    return FAILURE_NONE;
}

void tcp_stream_expect(struct tcp_stream *stream, size_t length) {
    int mark = (int)length;
    if (!stream->is_closed) {
        (void)setsockopt(stream->fd, SOL_SOCKET, SO_RCVLOWAT, &mark, sizeof mark);
    }
}

/* Mostly there is next to nothing, and one call takes it. */
static bool takes_all_at_once(struct tcp_stream *stream) {
    return !stream->is_held && receive(stream, READ_SIZE) < READ_SIZE && !stream->is_held;
}

void tcp_stream_catch_up(struct tcp_stream *stream) {
    int available = 0;
    if (stream->is_closed || takes_all_at_once(stream) || stream->is_closed ||
        ioctl(stream->fd, FIONREAD, &available) != 0) {
        return;
    }
    size_t left = available < 0 ? 0 : (size_t)available;
    while (!stream->is_closed && (left > 0 || stream->is_held)) {
        if (stream->is_held) {
            if (!may_go_on(stream)) {
                return;
            }
            go_on(stream);
            continue;
        }
        size_t length = receive(stream, READ_SIZE);
        if (length == 0) {
            return;
        }
        left = length < left ? left - length : 0;
    }
}
