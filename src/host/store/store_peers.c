/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/store/store_peers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "host/network/tcp_silence.h"
#include "host/store/store_debtors.h"
#include "host/store/store_lookout.h"
#include "host/store/store_peer.h"
#include "host/store/store_probation.h"
#include "host/store/store_service.h"

/* What one client may send in one turn of the loop. One request is never divided. */
#define TURN_REQUEST_BYTES ((size_t)4096)
/* What there has to be beside the reserve for one more connection. */
#define CONNECTION_BYTES ((size_t)65536)

struct client_log *store_peers_log(struct store_peers *peers) {
    return &peers->client_log;
}

static void report_limit(struct store_peer *peer, const char *message) {
    struct store_peers *peers = peer->peers;
    struct text reason = {0};
    bool is_full = store_room_explain(&peers->room, message, &reason);
    (is_full ? client_log_say_full : client_log_say)(
        &peers->client_log, &peer->address, text_string(&reason));
    text_clear(&reason);
}

static void ended(struct tcp_stream *stream, const struct failure *failure) {
    struct store_peer *peer = store_peer_of(stream);
    if (tcp_silence_is(failure->system_error)) {
        char *silence = text_format("no answer for %g s (%s)",
            duration_seconds(peer->peers->silence_timeout), failure->message);
        client_log_say(&peer->peers->client_log, &peer->address, silence);
        free(silence);
        store_lookout_report_silent(peer);
    } else if (failure->system_error == ENOMEM) {
        client_log_say(&peer->peers->client_log, &peer->address, failure->message);
    } else if (failure->code == FAILURE_LIMIT) {
        report_limit(peer, failure->message);
    }
    store_peer_forget(peer);
}

static void free_when_empty(struct store_peers *peers) {
    if (peers->is_freed && peers->peer_count == 0) {
        tcp_stream_pool_clear(&peers->pool);
        free(peers);
    }
}

static void released(struct tcp_stream *stream) {
    struct store_peer *peer = store_peer_of(stream);
    struct store_peers *peers = peer->peers;
    store_lookout_forget(peer);
    if (peer->previous != NULL) {
        peer->previous->next = peer->next;
    } else {
        peers->first = peer->next;
    }
    if (peer->next != NULL) {
        peer->next->previous = peer->previous;
    }
    free(peer);
    peers->peer_count--;
    free_when_empty(peers);
}

static const struct tcp_stream_owner stream_owner = {
    .received = store_service_receive,
    .make_room = store_debtors_make_stream_room,
    .ended = ended,
    .released = released,
};

static void set_own(struct store_peers *peers, const char *key, struct slice value) {
    store_peers_apply_own(
        peers, &(struct store_request){
                   .operation = STORE_SET, .key = slice_from_string(key), .value = value});
}

/* Sets the key by which clients can check that this server supports presence. */
static void set_served_key(struct store_peers *peers) {
    const char *key = store_presence_served_key(peers->presence);
    if (key[0] != '\0') {
        set_own(peers, key, slice_from_string("1"));
    }
}

struct store_peers *store_peers_new(
    struct event_loop *loop, const struct store_server_settings *settings) {
    const struct store_limits *limits =
        settings->limits != NULL ? settings->limits : &STORE_LIMITS_DEFAULT;
    struct store_peers *peers = memory_allocate(sizeof *peers);
    peers->loop = loop;
    client_log_init(&peers->client_log, loop, settings->log);
    peers->limits = *limits;
    peers->table = store_table_new(limits);
    peers->own_prefix = memory_duplicate_string(settings->own_prefix ? settings->own_prefix : "");
    store_table_own(peers->table, slice_from_string(peers->own_prefix));
    peers->presence = store_presence_new(settings->presence_prefix);
    peers->operations = settings->operations;
    peers->observer = settings->observer;
    peers->gate = (struct store_gate){.key = settings->key,
        .guarded_prefix =
            slice_from_string(settings->guards_only_own_keys ? peers->own_prefix : "")};
    peers->watched_key = memory_duplicate_string(settings->watched_key);
    peers->standby_key = memory_duplicate_string(settings->standby_key);
    peers->stranger_answer = memory_duplicate_string(settings->stranger_answer);
    peers->is_standing_by = settings->standby_key != NULL;
    peers->silence_timeout = settings->silence_timeout;
    tcp_stream_pool_init(
        &peers->pool, &stream_owner, limits->queued_reply_bytes, limits->memory_bytes);
    store_room_init(&peers->room, loop, limits->memory_bytes, peers->table, &peers->pool);
    peers->pool.turn_bytes = TURN_REQUEST_BYTES;
    peers->pool.held_above = limits->unread_bytes;
    bytes_init(&peers->replies, limits->queued_reply_bytes);
    bytes_init(&peers->single, limits->queued_reply_bytes);
    set_served_key(peers);
    if (settings->key != NULL && !settings->guards_only_own_keys) {
        store_probation_init(peers, settings->unproven_maximum);
    }
    return peers;
}

void store_peers_free(struct store_peers *peers) {
    if (peers == NULL) {
        return;
    }
    peers->observer = (struct store_server_observer){0};
    store_peers_close_all(peers);
    store_probation_clear(peers);
    errands_free(peers->errands);
    store_room_clear(&peers->room);
    store_table_free(peers->table);
    store_presence_free(peers->presence);
    free(peers->watched_key);
    free(peers->standby_key);
    free(peers->stranger_answer);
    free(peers->own_prefix);
    store_effects_clear(&peers->effects);
    store_effects_clear(&peers->presence_effects);
    bytes_clear(&peers->replies);
    bytes_clear(&peers->single);
    peers->is_freed = true;
    free_when_empty(peers);
}

static void link_peer(struct store_peers *peers, struct store_peer *peer) {
    peer->next = peers->first;
    if (peers->first != NULL) {
        peers->first->previous = peer;
    }
    peers->first = peer;
    peers->peer_count++;
    peers->open_count++;
    store_peers_report_connections(peers);
}

void store_peers_add(struct store_peers *peers, int fd_taken, const union tcp_address *address) {
    if (!spare_memory_keep_reserve() || !spare_memory_is_there(CONNECTION_BYTES)) {
        close(fd_taken);
        client_log_say(&peers->client_log, address, "turned away: there is no memory for it");
        return;
    }
    if (peers->open_count >= peers->limits.connections) {
        close(fd_taken);
        char reason[128];
        snprintf(reason, sizeof reason, "turned away: the limit of %zu connections is reached",
            peers->limits.connections);
        client_log_say(&peers->client_log, address, reason);
        return;
    }
    struct store_peer *peer = memory_allocate(sizeof *peer);
    struct failure failure = {0};
    if (tcp_stream_open(&peer->stream, peers->loop, &peers->pool, fd_taken, false, &failure) !=
        FAILURE_NONE) {
        close(fd_taken);
        free(peer);
        client_log_say(&peers->client_log, address, failure.message);
        return;
    }
    peer->peers = peers;
    peer->connection.owner = peer;
    peer->holder.owner = peer;
    peer->address = *address;
    store_reader_init(&peer->reader, &peers->limits);
    tcp_address_host(address, peer->reader.proof.client_address);
    store_probation_begin(peer);
    link_peer(peers, peer);
}

size_t store_peers_count(const struct store_peers *peers) {
    return peers->open_count;
}

void store_peers_drop(struct store_peers *peers, const char *name) {
    const struct store_presence_holder *holder = store_presence_find(peers->presence, name);
    if (holder != NULL) {
        store_lookout_report_silent(holder->owner);
        store_peer_dismiss(holder->owner, "let go: the node it speaks for has stalled");
    }
}

void store_peers_close_all(struct store_peers *peers) {
    for (struct store_peer *peer = peers->first; peer != NULL; peer = peer->next) {
        store_peer_close(peer);
    }
}

void store_peers_catch_up(struct store_peers *peers) {
    for (struct store_peer *peer = peers->first; peer != NULL; peer = peer->next) {
        tcp_stream_catch_up(&peer->stream);
        if (peer->stream.is_held) {
            store_peer_dismiss(
                peer, "it has not read its replies by the time the store was renewed");
        }
    }
}

/* Without memory for a list of those that wait for keys that go, all who wait are let go first. */
static void dismiss_waiting(struct store_peers *peers) {
    for (struct store_peer *peer = peers->first; peer != NULL; peer = peer->next) {
        if (!peer->stream.is_closed && peer->connection.wait != NULL) {
            store_peer_dismiss(peer, "the store was renewed while this client waited");
        }
    }
}

void store_peers_renew_table(struct store_peers *peers, const char *kept_prefix) {
    store_effects_reset(&peers->effects);
    if (!store_effects_have_room(&peers->effects, store_table_waiting(peers->table))) {
        dismiss_waiting(peers);
    }
    store_table_renew(peers->table, slice_from_string(kept_prefix), &peers->effects);
    store_service_carry_out(peers);
    set_served_key(peers);
    store_room_share(&peers->room, 0);
}

void store_peers_serve(struct store_peers *peers, const struct store_seeds *seeds) {
    for (size_t i = 0; i < seeds->count; i++) {
        set_own(peers, seeds->items[i].key, bytes_slice(&seeds->items[i].value));
    }
    peers->is_standing_by = false;
}

void store_peers_stand_by(struct store_peers *peers, struct slice answer) {
    set_own(peers, peers->standby_key, answer);
    peers->is_standing_by = true;
}

bool store_peers_are_standing_by(const struct store_peers *peers) {
    return peers->is_standing_by;
}

void store_peers_tell(struct store_peers *peers, const char *raw_key, const char *value_or_null) {
    store_effects_reset(&peers->effects);
    store_table_tell(peers->table, slice_from_string(raw_key),
        value_or_null != NULL ? slice_from_string(value_or_null) : (struct slice){0},
        &peers->effects);
    store_service_carry_out(peers);
}
