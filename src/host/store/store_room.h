/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory that a store's table and the buffers of its clients share. Each may use what the other
 * leaves of the limit. But buffers always have a little, so that values can be read from a full
 * store; and the table always finds a little, or buffers are given up for it. This module knows the
 * numbers; host/store_peers knows whose buffers to give up. */
#ifndef MUSTER_HOST_STORE_STORE_ROOM_H
#define MUSTER_HOST_STORE_STORE_ROOM_H

#include <stdbool.h>
#include <stddef.h>

#include "core/store/store_table.h"
#include "host/network/tcp_stream.h"
#include "host/store/memory_return.h"

struct store_room {
    size_t memory_bytes; /* the limit */
    struct store_table *table;
    struct tcp_stream_pool *pool;
    struct memory_return *memory_return;
};

/* Borrows the table and the pool. */
void store_room_init(struct store_room *room, struct event_loop *loop, size_t memory_bytes,
    struct store_table *table, struct tcp_stream_pool *pool);
void store_room_clear(struct store_room *room);

/* Tells table and pool how much of the limit each may use now. `uncounted` bytes of the buffers are
 * not counted: the input of the client that is being served, which the table may take over. */
void store_room_share(struct store_room *room, size_t uncounted);

/* Whether buffers have to be given up so that the table can grow by `wanted` bytes, and by a little
 * more. False when there is not much in the buffers. `uncounted` as above. */
bool store_room_lacks(const struct store_room *room, size_t uncounted, size_t wanted);

/* A buffer has passed its limit, as `message` says. Appends the message. Where it is because the
 * table leaves no room, also what fills the table, and returns true. */
bool store_room_explain(const struct store_room *room, const char *message, struct text *out);

/* A client that holds no more than this in its buffers is not closed to make room. */
size_t store_room_modest(const struct store_room *room);

#endif
