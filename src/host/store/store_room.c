/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/store/store_room.h"

#include "core/store/store_limits.h"

#define PART_KEPT_FREE 16
#define MODEST_BYTES ((size_t)1 << 20)

void store_room_init(struct store_room *room, struct event_loop *loop, size_t memory_bytes,
    struct store_table *table, struct tcp_stream_pool *pool) {
    *room = (struct store_room){
        memory_bytes, table, pool, memory_return_new(loop, MEMORY_RETURN_DELAY)};
}

void store_room_clear(struct store_room *room) {
    memory_return_free(room->memory_return);
    *room = (struct store_room){0};
}

/* What the table leaves, or the little that buffers always have. */
static size_t room_of_buffers(const struct store_room *room) {
    size_t stored = store_table_memory(room->table);
    size_t left = stored < room->memory_bytes ? room->memory_bytes - stored : 0;
    size_t least = store_memory_reserve(room->memory_bytes) / 2;
    return left > least ? left : least;
}

void store_room_share(struct store_room *room, size_t uncounted) {
    size_t buffered = room->pool->buffered_bytes;
    room->pool->buffer_ceiling = room_of_buffers(room);
    store_table_reserve_memory(room->table, buffered - uncounted);
    memory_return_note(room->memory_return, store_table_memory(room->table) + buffered);
}

bool store_room_lacks(const struct store_room *room, size_t uncounted, size_t wanted) {
    size_t ceiling = room_of_buffers(room);
    size_t buffered = room->pool->buffered_bytes - uncounted;
    wanted += ceiling / PART_KEPT_FREE;
    return buffered > store_room_modest(room) && (wanted > ceiling || buffered > ceiling - wanted);
}

bool store_room_explain(const struct store_room *room, const char *message, struct text *out) {
    text_append(out, message);
    if (store_table_memory(room->table) < room->memory_bytes / 2) {
        return false;
    }
    text_append(out, ": ");
    store_table_describe(room->table, out);
    return true;
}

size_t store_room_modest(const struct store_room *room) {
    size_t least = store_memory_reserve(room->memory_bytes) / 2;
    return least < MODEST_BYTES ? least : MODEST_BYTES;
}
