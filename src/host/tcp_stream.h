/* SPDX-License-Identifier: BSD-3-Clause */
/* A non-blocking TCP connection on an event loop, made for many that are mostly idle: one buffer
 * receives for all streams of a pool, and a stream owns memory only while it holds a message that
 * is not yet complete, or bytes the kernel did not take. It knows nothing of what the bytes mean.
 *
 * Sending goes to the kernel at once; what does not fit is queued up to a ceiling. Both directions
 * count against the pool's ceiling. A stream that passes a ceiling, or whose peer is gone, ends
 * itself and says so. */
#ifndef MUSTER_HOST_TCP_STREAM_H
#define MUSTER_HOST_TCP_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "host/event_loop.h"

struct tcp_stream;

/* What the owner of streams is told. Callbacks may send on and close any stream. */
struct tcp_stream_owner {
    /* A stream opened while still connecting stands now. NULL when there are none. */
    void (*connected)(struct tcp_stream *stream);
    /* All bytes received and not yet consumed. Returns how many to consume from the front; sets
     * `*out_needed` to the length below which another call is vain (0: any). */
    size_t (*received)(struct tcp_stream *stream, struct slice input, size_t *out_needed);
    /* Everything queued has gone to the kernel. May be NULL. */
    void (*drained)(struct tcp_stream *stream);
    /* The stream has closed itself: FAILURE_DISCONNECTED, FAILURE_LIMIT or FAILURE_SYSTEM. */
    void (*ended)(struct tcp_stream *stream, const struct failure *failure);
    /* After the end or tcp_stream_close, once the loop has let go: the memory may be freed. */
    void (*released)(struct tcp_stream *stream);
};

/* What streams of one loop share. */
struct tcp_stream_pool {
    const struct tcp_stream_owner *owner;
    size_t queue_ceiling;  /* unsent bytes of one stream */
    size_t buffer_ceiling; /* memory of all streams' buffers; the owner may change it */
    size_t buffered_bytes; /* memory of all streams' buffers now */
    uint8_t *read_buffer;
};

void tcp_stream_pool_init(struct tcp_stream_pool *pool, const struct tcp_stream_owner *owner,
    size_t queue_ceiling, size_t buffer_ceiling);
/* All its streams have been released. */
void tcp_stream_pool_clear(struct tcp_stream_pool *pool);

/* To be embedded; the fields are the module's own, but for is_connecting and is_closed, which
 * anyone may read. */
struct tcp_stream {
    uv_poll_t poll;
    struct tcp_stream_pool *pool;
    struct bytes input;  /* the front of a message */
    size_t input_needed; /* length of input below which the owner is not asked */
    struct bytes output; /* what the kernel did not take */
    size_t output_sent;  /* of it, from the front */
    int fd;
    bool is_connecting;
    bool is_closed;
};

/* Takes a non-blocking socket; `is_connecting` when connect() said EINPROGRESS. On failure the
 * socket stays the caller's, and nothing has to be closed or awaited. */
__attribute__((warn_unused_result)) enum failure_code tcp_stream_open(struct tcp_stream *stream,
    struct event_loop *loop, struct tcp_stream_pool *pool, int fd, bool is_connecting,
    struct failure *failure);

/* Closes the socket and gives the buffers back; `released` follows. Twice is fine. */
void tcp_stream_close(struct tcp_stream *stream);

/* Sends or queues; a failure ends the stream before this returns. Nothing happens on a closed
 * stream. */
void tcp_stream_send(struct tcp_stream *stream, struct slice data);

/* Whether everything sent has gone to the kernel. */
bool tcp_stream_is_drained(const struct tcp_stream *stream);

/* Receives what has arrived by now, without waiting for the loop. */
void tcp_stream_catch_up(struct tcp_stream *stream);

#endif
