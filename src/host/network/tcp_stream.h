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
#include <sys/types.h>
#include <uv.h>

#include "base/bytes.h"
#include "base/duration.h"
#include "base/failure.h"
#include "base/log.h"
#include "core/store/store_request.h"
#include "host/loop/event_loop.h"
#include "host/network/network_address.h"

/* Opens listening TCP sockets. A free port is never probed and released again: port 0 is bound and
 * kept, and the port that the kernel chose is reported. This module does not accept connections. */

/* Which user of this machine has the other end of a TCP connection, as the kernel's sock_diag
 * tells. It does not matter which addresses the two ends have: a socket that the kernel knows here
 * is of this machine. "Here" is this network namespace. */

enum socket_owner {
    SOCKET_OWNER_UNKNOWN,   /* the kernel does not tell such things here */
    SOCKET_OWNER_GONE,      /* the connection has ended, and nobody can tell whose it was */
    SOCKET_OWNER_ELSEWHERE, /* no socket here is the other end */
    SOCKET_OWNER_USER,      /* of this machine: `out_user` */
};

/* Returns a descriptor to ask with, which the caller closes, or -1 when the kernel cannot be
 * asked. */
int socket_owner_open(void);

/* `asking_fd` may be -1. `own` and `peer` are the addresses of this end, whose descriptor is
 * `connection_fd`, and of the other. Does not block. A user that this process's user namespace does
 * not know has the number 65534. */
enum socket_owner socket_owner_ask(int asking_fd, int connection_fd, const union tcp_address *own,
    const union tcp_address *peer, uid_t *out_user);

/* Accepts connections of a listening socket on an event loop, several at a time. When the process
 * has no descriptor left, new clients are closed at once (they retry). Otherwise they would wait
 * in the kernel's queue and the loop would spin. So are those that would take a descriptor which is
 * kept for the process itself (descriptor_limit_keep): the kernel gives the lowest that is free, so
 * the last ones are never a client's. The owner decides which clients it serves, and how. */

struct tcp_acceptor;

struct tcp_acceptor_settings {
    int listening_fd; /* non-blocking; taken by tcp_acceptor_new unless it fails */
    const char *name; /* name of the service, for the log; outlives the acceptor */
    const struct log *log;
    uint64_t kept; /* descriptors that its clients do not get, beside what the process keeps */
    /* Takes `fd_taken`, which is non-blocking and close-on-exec. It must not free the acceptor. */
    void (*accepted)(void *context, int fd_taken, const union tcp_address *peer);
    void *context;
};

__attribute__((warn_unused_result)) enum failure_code tcp_acceptor_new(struct event_loop *loop,
    const struct tcp_acceptor_settings *settings, struct tcp_acceptor **out_acceptor,
    struct failure *failure);

/* Closes the listening socket. Accepts NULL. */
void tcp_acceptor_free(struct tcp_acceptor *acceptor);

/* Accepts every connection that is ready now. */
void tcp_acceptor_drain(struct tcp_acceptor *acceptor);

/* Listens on `port` (0: any free one) of `host`: a name, an IPv4 address, or an IPv6 address
 * without brackets. NULL or "" means every address of both families (IPv4 alone where IPv6 is
 * switched off), as in PyTorch's socket.cpp SocketListenOp. The socket is non-blocking and
 * close-on-exec; the caller closes it. FAILURE_SYSTEM with the address and port in the message;
 * FAILURE_INVALID for a host that does not resolve or a port outside 0..65535. Blocks while a name
 * is being resolved. */
__attribute__((warn_unused_result)) enum failure_code tcp_listener_open(
    const char *host, int port, int *out_fd, int *out_port, struct failure *failure);

/* Listens on an inherited descriptor and makes it non-blocking and close-on-exec. It must be a
 * bound TCP socket, and may already be listening. FAILURE_INVALID for any other descriptor, which
 * then stays open and unchanged. */
__attribute__((warn_unused_result)) enum failure_code tcp_listener_adopt(
    int fd, int *out_port, struct failure *failure);

/* Listening sockets that only processes of this machine reach: on 127.0.0.1, on ::1, and on this
 * machine's own addresses of one name, all with the same port. On an own address that is not
 * loopback (a host name often has one) only packets of the loopback interface are heard: what a
 * machine says to itself comes by it, whatever the address. Where the kernel refuses such a filter,
 * the owner must look at who has connected (tcp_address_is_this_machine). */

#define LOCAL_LISTENER_MOST 8

struct local_listener {
    int fds[LOCAL_LISTENER_MOST]; /* non-blocking and close-on-exec; the caller closes them */
    size_t count;                 /* at least 1 */
    int port;
};

/* Listens on `port` (0: one that is free on all of them). FAILURE_MISSING when the name does not
 * resolve, or has an address of another machine: then its users need more than this machine.
 * FAILURE_SYSTEM as tcp_listener_open. Blocks while the name is being resolved. */
__attribute__((warn_unused_result)) enum failure_code local_listener_open(
    const char *name, int port, struct local_listener *out_listener, struct failure *failure);

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
