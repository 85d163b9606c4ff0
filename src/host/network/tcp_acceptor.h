/* SPDX-License-Identifier: BSD-3-Clause */
/* Accepts connections of a listening socket on an event loop, several at a time. When the process
 * has no descriptor left, new clients are closed at once (they retry). Otherwise they would wait
 * in the kernel's queue and the loop would spin. So are those that would take a descriptor which is
 * kept for the process itself (descriptor_limit_keep): the kernel gives the lowest that is free, so
 * the last ones are never a client's. The owner decides which clients it serves, and how. */
#ifndef MUSTER_HOST_NETWORK_TCP_ACCEPTOR_H
#define MUSTER_HOST_NETWORK_TCP_ACCEPTOR_H

#include <stdint.h>

#include "base/failure.h"
#include "base/log.h"
#include "host/loop/event_loop.h"
#include "host/network/tcp_address.h"

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

#endif
