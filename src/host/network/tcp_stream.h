/* SPDX-License-Identifier: BSD-3-Clause */
/* A non-blocking TCP connection on an event loop, made for many connections that are mostly idle.
 * All streams of a pool share one receive buffer. A stream owns memory only while it holds an
 * incomplete message, or bytes that the kernel did not accept. It does not know what the bytes
 * mean.
 *
 * Data to send goes to the kernel at once; the rest is queued up to a ceiling. Both directions
 * count towards the pool's ceiling. A stream that passes a ceiling, or whose peer is gone, closes
 * itself and calls `ended`.
 *
 * In one turn of the loop a stream receives little, so that the others get their turn. Only a
 * message that is longer is received in larger pieces. An owner that does not want to go on with
 * the input in this turn holds the stream. */
#ifndef MUSTER_HOST_NETWORK_TCP_STREAM_H
#define MUSTER_HOST_NETWORK_TCP_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#include "base/bytes.h"
#include "base/duration.h"
#include "base/failure.h"
#include "core/store/store_request.h"
#include "host/loop/event_loop.h"

/* Detects connections whose other machine disappears without closing them: power lost, cable
 * pulled, firewall closed. TCP alone waits for a quarter of an hour when it has something to send,
 * and forever when it has not. The kernel's keep-alive probes and TCP_USER_TIMEOUT shorten both. */

/* The timeout when the settings name none. */
#define TCP_SILENCE_DEFAULT ((struct duration){.nanoseconds = INT64_C(180000000000)})

/* Ends the connection with ETIMEDOUT (or with the error that the network reported) when the other
 * machine has not answered for about `timeout`. An idle connection is tested with three probes.
 * While data is on its way, the connection ends at the first retransmission after the timeout. The
 * timeout is rounded to whole seconds, at least two, because the kernel's probes are. Set on a
 * listening socket, it applies to every accepted connection.
 *
 * The other machine's kernel answers the probes, so a stopped program does not count as silent. But
 * a program that reads nothing while more data waits than the buffers hold does count as silent. */
void tcp_silence_limit(int fd, struct duration timeout);

/* As tcp_silence_limit, but whoever has the connection watches it: measures its silence and decides
 * (core/store/connection_silence). The kernel ends it only after three times the timeout. What is
 * not acknowledged is sent again every 0.2 s for the first seven times, and only then after pauses
 * that double: so lost packets are told from a machine that is gone. An idle connection is probed
 * every second. */
void tcp_silence_watch(int fd, struct duration timeout);

/* Nobody watches the connection any more, or for now: the kernel ends it after the timeout, and up
 * to a second later. For a connection with tcp_silence_watch, which also takes this back. */
void tcp_silence_leave(int fd, struct duration timeout);

/* How long nothing was heard of the other machine's kernel: no new data, and no acknowledgement of
 * data or of a probe. It is not more than the time since the connection was made. And how many
 * packets were sent again. Both are zero when the kernel does not tell. */
struct connection_hearing tcp_silence_measure(int fd);

/* Whether an established connection that ended with this errno ended by silence: after the timeout,
 * or because the network reported that the machine cannot be reached. */
bool tcp_silence_is(int system_error);

struct tcp_stream;

/* Callbacks to the owner of the streams. They may send on and close any stream. */
struct tcp_stream_owner {
    /* A stream that was opened while connecting is now connected. NULL when there are no such
     * streams. */
    void (*connected)(struct tcp_stream *stream);
    /* Gets all bytes received and not yet consumed. Returns how many to consume from the front.
     * Sets `*out_needed` to the length of input that the next call needs (0: any). */
    size_t (*received)(struct tcp_stream *stream, struct slice input, size_t *out_needed);
    /* The buffers of the pool's streams have no room for `wanted` bytes more of this one. The owner
     * may close other streams for it; otherwise this one ends. May be NULL. */
    void (*make_room)(struct tcp_stream *stream, size_t wanted);
    /* Everything queued has been given to the kernel. May be NULL. */
    void (*drained)(struct tcp_stream *stream);
    /* The stream has closed itself: FAILURE_DISCONNECTED, FAILURE_LIMIT or FAILURE_SYSTEM. */
    void (*ended)(struct tcp_stream *stream, const struct failure *failure);
    /* Called after the end or tcp_stream_close, when the loop no longer uses the stream. The memory
     * may now be freed. */
    void (*released)(struct tcp_stream *stream);
};

/* State shared by the streams of one loop. */
struct tcp_stream_pool {
    const struct tcp_stream_owner *owner;
    size_t queue_ceiling;  /* maximum unsent bytes of one stream */
    size_t buffer_ceiling; /* maximum memory of all streams' buffers; the owner may change it */
    size_t buffered_bytes; /* current memory of all streams' buffers */
    /* The most bytes received in one turn of the loop, unless a message needs more. At first as
     * many as fit into the receive buffer. */
    size_t turn_bytes;
    size_t held_above; /* a held stream goes on when it has at most this many unsent bytes */
    uint8_t *read_buffer;
};

void tcp_stream_pool_init(struct tcp_stream_pool *pool, const struct tcp_stream_owner *owner,
    size_t queue_ceiling, size_t buffer_ceiling);
/* All streams of the pool must have been released. */
void tcp_stream_pool_clear(struct tcp_stream_pool *pool);

/* Embed this struct in the owner's. The fields belong to this module; the owner may read
 * is_connecting, is_held and is_closed. */
struct tcp_stream {
    uv_poll_t poll;
    struct tcp_stream_pool *pool;
    struct bytes input;  /* the beginning of a message */
    size_t input_needed; /* the owner is not called before the input has this length */
    struct bytes output; /* bytes that the kernel did not accept */
    size_t output_sent;  /* how many of them have been sent meanwhile */
    int fd;
    bool is_connecting;
    bool is_held; /* see tcp_stream_hold */
    bool is_closed;
};

/* Takes a non-blocking socket. `is_connecting`: connect() returned EINPROGRESS. On failure the
 * socket stays the caller's, and there is nothing to close and no callback to wait for. */
__attribute__((warn_unused_result)) enum failure_code tcp_stream_open(struct tcp_stream *stream,
    struct event_loop *loop, struct tcp_stream_pool *pool, int fd, bool is_connecting,
    struct failure *failure);

/* Closes the socket and frees the buffers; `released` follows. A second call does nothing. */
void tcp_stream_close(struct tcp_stream *stream);

/* Sends or queues the data. A failure ends the stream before this returns. Does nothing on a closed
 * stream. */
void tcp_stream_send(struct tcp_stream *stream, struct slice data);

/* The same for data after which more is sent at once. Both arrive together: the kernel keeps the
 * first for the second, for 200 ms at most. */
void tcp_stream_send_ahead(struct tcp_stream *stream, struct slice data);

/* Whether everything sent has been given to the kernel. */
bool tcp_stream_is_drained(const struct tcp_stream *stream);

/* How many bytes the kernel has not accepted yet. */
size_t tcp_stream_unsent(const struct tcp_stream *stream);

/* Receives nothing more in this turn of the loop, nor while more than `held_above` bytes are
 * unsent. What the peer sends stays in the kernel, which makes the peer wait. After that `received`
 * is called with the input that was not consumed, if there is any. */
void tcp_stream_hold(struct tcp_stream *stream);

/* Leaves what arrives in the kernel, without a turn of the loop, until `length` bytes are there.
 * The end of the connection is told at once all the same. Above 1 the owner must know that nothing
 * shorter is urgent, and receives it by tcp_stream_catch_up. A kernel may not support it. */
void tcp_stream_expect(struct tcp_stream *stream, size_t length);

/* Receives what has arrived by now, without waiting for the loop. A stream that is held because of
 * unsent bytes receives nothing. */
void tcp_stream_catch_up(struct tcp_stream *stream);

#endif
