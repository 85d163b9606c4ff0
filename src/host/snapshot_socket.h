/* SPDX-License-Identifier: BSD-3-Clause */
/* A Unix socket that gives whoever connects one text and hangs up: how a running program shows its
 * state to others of the same user. What the text says is its owner's business. */
#ifndef MUSTER_HOST_SNAPSHOT_SOCKET_H
#define MUSTER_HOST_SNAPSHOT_SOCKET_H

#include "base/failure.h"
#include "base/text.h"
#include "host/event_loop.h"

struct snapshot_socket;

/* Makes the socket (mode 0600) at `path`, in place of one of this user's that may be there already;
 * `append` makes the text, from the event loop. A few readers are served at a time, others are sent
 * away. FAILURE_INVALID when something else is at `path`, FAILURE_SYSTEM otherwise. */
__attribute__((warn_unused_result)) enum failure_code snapshot_socket_new(struct event_loop *loop,
    const char *path, void (*append)(void *context, struct text *out), void *context,
    struct snapshot_socket **out_socket, struct failure *failure);

/* Removes the socket, unless something else is at its path by now. Accepts NULL. */
void snapshot_socket_free(struct snapshot_socket *socket);

/* The other side: connects and appends the text to `out`, blocking, not longer than some seconds
 * without a byte. FAILURE_SYSTEM when nobody serves there, FAILURE_LIMIT for a text of more than
 * SNAPSHOT_MAXIMUM_SIZE bytes. */
__attribute__((warn_unused_result)) enum failure_code snapshot_socket_read(
    const char *path, struct text *out, struct failure *failure);

#define SNAPSHOT_MAXIMUM_SIZE ((size_t)1 << 30)

#endif
