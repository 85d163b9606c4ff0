/* SPDX-License-Identifier: BSD-3-Clause */
/* Which user of this machine has the other end of a TCP connection, as the kernel's sock_diag
 * tells. It does not matter which addresses the two ends have: a socket that the kernel knows here
 * is of this machine. "Here" is this network namespace. */
#ifndef MUSTER_HOST_NETWORK_SOCKET_OWNER_H
#define MUSTER_HOST_NETWORK_SOCKET_OWNER_H

#include <sys/types.h>

#include "host/network/tcp_address.h"

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

#endif
