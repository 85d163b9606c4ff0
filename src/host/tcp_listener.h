/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens listening TCP sockets. A port is never looked for and given back: port 0 is bound, kept,
 * and what the kernel chose is reported. This module does not accept connections. */
#ifndef MUSTER_HOST_TCP_LISTENER_H
#define MUSTER_HOST_TCP_LISTENER_H

#include "base/failure.h"

/* Listens on `port` (0: a free one) of `host`: a name, an IPv4 or an IPv6 address, without
 * brackets. NULL or "" is every address of both families (IPv4 alone where IPv6 is switched off),
 * as PyTorch's socket.cpp SocketListenOp does. The socket is non-blocking and close-on-exec; the
 * caller closes it. FAILURE_SYSTEM with the address and port in the message, FAILURE_INVALID for a
 * host that does not resolve or a port outside 0..65535. Blocks while a name is being resolved. */
__attribute__((warn_unused_result)) enum failure_code tcp_listener_open(
    const char *host, int port, int *out_fd, int *out_port, struct failure *failure);

/* Listens on an inherited descriptor, which must be a bound TCP socket (it may be listening
 * already), and makes it non-blocking and close-on-exec. FAILURE_INVALID for any other
 * descriptor; it then stays open and unchanged. */
__attribute__((warn_unused_result)) enum failure_code tcp_listener_adopt(
    int fd, int *out_port, struct failure *failure);

#endif
