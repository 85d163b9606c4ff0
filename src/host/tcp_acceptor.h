/* SPDX-License-Identifier: BSD-3-Clause */
/* Accepts connections of a listening socket on an event loop, several at a time. When the process
 * runs out of descriptors, clients are turned away at once (they retry) instead of waiting in the
 * kernel's queue while the loop spins. Who is let in, and what happens then, is the owner's. */
#ifndef MUSTER_HOST_TCP_ACCEPTOR_H
#define MUSTER_HOST_TCP_ACCEPTOR_H

#include "base/failure.h"
#include "base/log.h"
#include "host/event_loop.h"
#include "host/tcp_address.h"

struct tcp_acceptor;

struct tcp_acceptor_settings {
    int listening_fd; /* non-blocking; the acceptor's from tcp_acceptor_new on, unless that fails */
    const char *name; /* what is served here, for the log; outlives the acceptor */
    const struct log *log;
    /* Takes `fd_taken`, which is non-blocking and close-on-exec. Must not free the acceptor. */
    void (*accepted)(void *context, int fd_taken, const union tcp_address *peer);
    void *context;
};

__attribute__((warn_unused_result)) enum failure_code tcp_acceptor_new(struct event_loop *loop,
    const struct tcp_acceptor_settings *settings, struct tcp_acceptor **out_acceptor,
    struct failure *failure);

/* Closes the listening socket. NULL is fine. */
void tcp_acceptor_free(struct tcp_acceptor *acceptor);

/* Hands over every connection that is ready now. */
void tcp_acceptor_drain(struct tcp_acceptor *acceptor);

#endif
