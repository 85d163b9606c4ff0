/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens listening TCP sockets. A free port is never probed and released again: port 0 is bound and
 * kept, and the port that the kernel chose is reported. This module does not accept connections. */
#ifndef MUSTER_HOST_NETWORK_TCP_LISTENER_H
#define MUSTER_HOST_NETWORK_TCP_LISTENER_H

#include "base/failure.h"

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

#endif
