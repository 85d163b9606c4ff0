/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/store/store_debtors.h"

size_t store_debtors_uncounted(const struct store_peers *peers) {
    return peers->current != NULL ? peers->current->stream.input.capacity : 0;
}

static size_t buffered(const struct store_peer *peer) {
    return peer->stream.input.capacity + peer->stream.output.capacity;
}

/* The client with the largest buffers, except the one being served and another one; or NULL. */
static struct store_peer *largest_peer(
    const struct store_peers *peers, const struct store_peer *except) {
    struct store_peer *largest = NULL;
    for (struct store_peer *peer = peers->first; peer != NULL; peer = peer->next) {
        if (peer != peers->current && peer != except &&
            (largest == NULL || buffered(peer) > buffered(largest))) {
            largest = peer;
        }
    }
    return largest;
}

/* Closes the clients that hold most where their buffers leave no room for `wanted` bytes. */
static void give_up(struct store_peer *peer) {
    struct store_peers *peers = peer->peers;
    store_peer_dismiss(peer, "the store's memory is needed: this client holds most of it, with "
                             "unfinished requests or unread replies");
    store_room_share(&peers->room, store_debtors_uncounted(peers));
}

void store_debtors_make_room(struct store_peers *peers, size_t wanted) {
    while (store_room_lacks(&peers->room, store_debtors_uncounted(peers), wanted)) {
        struct store_peer *largest = largest_peer(peers, NULL);
        if (largest == NULL || buffered(largest) <= store_room_modest(&peers->room)) {
            return;
        }
        give_up(largest);
    }
}

void store_debtors_make_stream_room(struct tcp_stream *stream, size_t wanted) {
    struct store_peer *peer = store_peer_of(stream);
    struct store_peers *peers = peer->peers;
    const struct tcp_stream_pool *pool = &peers->pool;
    while (wanted > pool->buffer_ceiling || pool->buffered_bytes > pool->buffer_ceiling - wanted) {
        struct store_peer *largest = largest_peer(peers, peer);
        if (largest == NULL || buffered(largest) <= store_room_modest(&peers->room) ||
            buffered(largest) <= buffered(peer) + wanted) {
            return;
        }
        give_up(largest);
    }
}
