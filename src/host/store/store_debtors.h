/* SPDX-License-Identifier: BSD-3-Clause */
/* Whose buffers are given up when the memory of a store is needed: those of the clients that hold
 * most, with unfinished requests or unread replies. host/store/store_room has the numbers. This is
 * a part of store_peers. */
#ifndef MUSTER_HOST_STORE_STORE_DEBTORS_H
#define MUSTER_HOST_STORE_STORE_DEBTORS_H

#include <stddef.h>

#include "host/store/store_peer.h"

/* The bytes of the client being served that count for nobody: what the table takes leaves its input
 * buffer. */
size_t store_debtors_uncounted(const struct store_peers *peers);

/* Closes the clients that hold most where their buffers leave no room for `wanted` bytes. The one
 * being served is not closed, nor is one that holds little. */
void store_debtors_make_room(struct store_peers *peers, size_t wanted);

/* As `make_room` of tcp_stream_owner: makes room for what is being received from a client or sent
 * to it, and closes only clients that hold more than this one would then. */
void store_debtors_make_stream_room(struct tcp_stream *stream, size_t wanted);

#endif
