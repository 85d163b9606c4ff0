/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens listening TCP sockets. A free port is never probed and released again: port 0 is bound and
 * kept, and the port that the kernel chose is reported. This module does not accept connections. */
#ifndef MUSTER_HOST_NETWORK_TCP_LISTENER_H
#define MUSTER_HOST_NETWORK_TCP_LISTENER_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/failure.h"
#include "base/log.h"
#include "host/loop/event_loop.h"
#include "host/network/network_address.h"

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

#endif
