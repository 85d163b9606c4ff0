/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/store/store_peer.h"

#include "host/store/store_probation.h"

struct store_peer *store_peer_of(struct tcp_stream *stream) {
    return (struct store_peer *)(void *)stream;
}

void store_peers_apply_own(struct store_peers *peers, const struct store_request *request) {
    struct store_connection own = {0};
    store_effects_reset(&peers->presence_effects);
    store_table_apply(peers->table, &own, request, &peers->presence_effects);
}

void store_peers_remove_ended(struct store_peers *peers) {
    struct store_presence_key *key;
    while (!peers->is_carrying_out && (key = store_presence_take_gone(peers->presence)) != NULL) {
        store_peers_apply_own(peers, &(struct store_request){.operation = STORE_DELETE,
                                         .key = slice_from_string(key->raw_key)});
        if (peers->observer.gone != NULL) {
            peers->observer.gone(peers->observer.context, key->name, key->value);
        }
        store_presence_key_free(key);
    }
}

void store_peers_report_connections(struct store_peers *peers) {
    if (peers->observer.connections != NULL) {
        peers->observer.connections(
            peers->observer.context, peers->open_count - peers->unproven.count);
    }
}

void store_peer_forget(struct store_peer *peer) {
    struct store_peers *peers = peer->peers;
    if (peer->errand != NULL) {
        errands_drop(peers->errands, peer->errand);
        peer->errand = NULL;
    }
    store_probation_end(peer);
    store_table_disconnect(peers->table, &peer->connection);
    store_reader_clear(&peer->reader);
    store_presence_leave(peers->presence, &peer->holder);
    peers->open_count--;
    store_peers_remove_ended(peers);
    store_peers_report_connections(peers);
}

void store_peer_close(struct store_peer *peer) {
    if (!peer->stream.is_closed) {
        tcp_stream_close(&peer->stream);
        store_peer_forget(peer);
    }
}

void store_peers_reset_buffer(struct bytes *buffer) {
    buffer->length = 0;
    if (buffer->capacity > 2 * STORE_PEER_COLLECTED_BYTES) {
        bytes_clear(buffer);
    }
}

void store_peers_send_collected(struct store_peers *peers) {
    peers->turn_reply_bytes += peers->replies.length;
    if (peers->unhurried_bytes == peers->replies.length) {
        tcp_stream_send_ahead(&peers->current->stream, bytes_slice(&peers->replies));
    } else {
        tcp_stream_send(&peers->current->stream, bytes_slice(&peers->replies));
    }
    peers->unhurried_bytes = 0;
    store_peers_reset_buffer(&peers->replies);
}

void store_peer_dismiss_and_say(struct store_peer *peer, const char *reason,
    void (*say)(struct client_log *log, const union tcp_address *address, const char *what)) {
    if (peer == peer->peers->current) {
        store_peers_send_collected(peer->peers);
    }
    if (!peer->stream.is_closed) {
        store_peer_close(peer);
        say(&peer->peers->client_log, &peer->address, reason);
    }
}

void store_peer_dismiss(struct store_peer *peer, const char *reason) {
    store_peer_dismiss_and_say(peer, reason, client_log_say);
}
