/* SPDX-License-Identifier: BSD-3-Clause */
/* Listening sockets that only processes of this machine reach: on 127.0.0.1, on ::1, and on this
 * machine's own addresses of one name, all with the same port. On an own address that is not
 * loopback (a host name often has one) only packets of the loopback interface are heard: what a
 * machine says to itself comes by it, whatever the address. Where the kernel refuses such a filter,
 * the owner must look at who has connected (tcp_address_is_this_machine). */
#ifndef MUSTER_HOST_NETWORK_LOCAL_LISTENER_H
#define MUSTER_HOST_NETWORK_LOCAL_LISTENER_H

#include <stddef.h>

#include "base/failure.h"

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

void local_listener_close(struct local_listener *listener);

#endif
