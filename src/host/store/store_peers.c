/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/store/store_peers.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "core/store/connection_silence.h"
#include "core/store/store_presence.h"
#include "core/store/store_table.h"
#include "host/store/client_log.h"
#include "host/store/store_room.h"
#include "host/network/tcp_silence.h"
#include "host/network/tcp_stream.h"
#include "wire/store/store_reader.h"
#include "wire/store/store_reply_codec.h"

/* Replies to requests that arrived together are collected up to about this size. A buffer that grew
 * larger for one reply is freed. */
#define COLLECTED_BYTES ((size_t)65536)

/* What one client may send and get in one turn of the loop. One request is never divided. */
#define TURN_REQUEST_BYTES ((size_t)4096)
#define TURN_REPLY_BYTES ((size_t)262144)

struct store_peers {
    struct event_loop *loop;
    struct client_log client_log;
    struct store_limits limits;
    struct store_table *table;
    struct store_effects effects;
    bool is_carrying_out; /* while true the table must not change, because the replies in `effects`
                             borrow from it */
    struct store_presence *presence;
    struct store_effects presence_effects; /* effects of the host's own requests */
    struct tally *operations;              /* or NULL */
    struct store_server_observer observer;
    char *watched_key; /* or NULL */
    struct store_gate gate;
    struct duration silence_timeout;
    struct tcp_stream_pool pool;
    struct store_peer *first;
    size_t open_count;
    size_t peer_count;          /* open ones, and closed ones that the loop still holds */
    struct store_peer *current; /* the peer whose requests are being carried out; may be NULL */
    struct bytes replies;       /* collected replies to `current` */
    size_t turn_reply_bytes;    /* sent to `current` in this turn */
    struct bytes single;        /* one reply to another client */
    struct store_room room;
    bool is_freed;
};

/* One client. It stays in the list until the loop has let go of its stream. */
struct store_peer {
    struct tcp_stream stream; /* first, so that a stream is its peer */
    struct store_peers *peers;
    struct store_peer *next;
    struct store_peer *previous;
    struct store_connection connection;
    struct store_presence_holder holder;
    struct connection_silence silence; /* while it holds a presence key */
    struct store_reader reader;
    union tcp_address address;
};

static struct store_peer *peer_of(struct tcp_stream *stream) {
    return (struct store_peer *)(void *)stream;
}

struct client_log *store_peers_log(struct store_peers *peers) {
    return &peers->client_log;
}

/* Applies a request of the host itself; its reply is not used. */
static void apply_own(struct store_peers *peers, const struct store_request *request) {
    struct store_connection own = {0};
    store_effects_reset(&peers->presence_effects);
    store_table_apply(peers->table, &own, request, &peers->presence_effects);
}

/* Removes the presence keys of closed connections from the table, and calls the observer's
 * `gone`. */
static void remove_ended_presence(struct store_peers *peers) {
    struct store_presence_key *key;
    while (!peers->is_carrying_out && (key = store_presence_take_gone(peers->presence)) != NULL) {
        apply_own(peers, &(struct store_request){
                             .operation = STORE_DELETE, .key = slice_from_string(key->raw_key)});
        if (peers->observer.gone != NULL) {
            peers->observer.gone(peers->observer.context, key->name, key->value);
        }
        store_presence_key_free(key);
    }
}

static void report_connections(struct store_peers *peers) {
    if (peers->observer.connections != NULL) {
        peers->observer.connections(peers->observer.context, peers->open_count);
    }
}

/* Removes a closing client from the table and from presence. */
static void forget_client(struct store_peer *peer) {
    struct store_peers *peers = peer->peers;
    store_table_disconnect(peers->table, &peer->connection);
    store_reader_clear(&peer->reader);
    store_presence_leave(peers->presence, &peer->holder);
    peers->open_count--;
    remove_ended_presence(peers);
    report_connections(peers);
}

static void close_peer(struct store_peer *peer) {
    if (!peer->stream.is_closed) {
        tcp_stream_close(&peer->stream);
        forget_client(peer);
    }
}

static void reset_buffer(struct bytes *buffer) {
    buffer->length = 0;
    if (buffer->capacity > 2 * COLLECTED_BYTES) {
        bytes_clear(buffer);
    }
}

static void send_collected(struct store_peers *peers) {
    peers->turn_reply_bytes += peers->replies.length;
    tcp_stream_send(&peers->current->stream, bytes_slice(&peers->replies));
    reset_buffer(&peers->replies);
}

/* Closes a client for a reason, which `say` logs. Its replies to earlier requests are sent first.
 */
static void dismiss_and_say(struct store_peer *peer, const char *reason,
    void (*say)(struct client_log *log, const union tcp_address *address, const char *what)) {
    if (peer == peer->peers->current) {
        send_collected(peer->peers);
    }
    if (!peer->stream.is_closed) {
        close_peer(peer);
        say(&peer->peers->client_log, &peer->address, reason);
    }
}

static void dismiss(struct store_peer *peer, const char *reason) {
    dismiss_and_say(peer, reason, client_log_say);
}

/* Bytes that the table takes leave the input buffer of the client being served. */
static size_t uncounted(const struct store_peers *peers) {
    return peers->current != NULL ? peers->current->stream.input.capacity : 0;
}

static size_t buffered(const struct store_peer *peer) {
    return peer->stream.input.capacity + peer->stream.output.capacity;
}

/* The client with the largest buffers, except the one being served; or NULL. */
static struct store_peer *largest_peer(const struct store_peers *peers) {
    struct store_peer *largest = NULL;
    for (struct store_peer *peer = peers->first; peer != NULL; peer = peer->next) {
        if (peer != peers->current && (largest == NULL || buffered(peer) > buffered(largest))) {
            largest = peer;
        }
    }
    return largest;
}

/* Closes the clients that hold most where their buffers leave no room for `wanted` bytes. */
static void make_room(struct store_peers *peers, size_t wanted) {
    while (store_room_lacks(&peers->room, uncounted(peers), wanted)) {
        struct store_peer *largest = largest_peer(peers);
        if (largest == NULL || buffered(largest) <= store_room_modest(&peers->room)) {
            return;
        }
        dismiss(largest, "the store's memory is needed: this client holds most of it, with "
                         "unfinished requests or unread replies");
        store_room_share(&peers->room, uncounted(peers));
    }
}

static void reply_to(
    struct store_peers *peers, struct store_peer *peer, const struct store_reply *reply) {
    bool is_current = peer == peers->current;
    struct bytes *buffer = is_current ? &peers->replies : &peers->single;
    if (store_reply_encode(reply, buffer) != FAILURE_NONE) {
        char reason[128];
        snprintf(reason, sizeof reason, "a reply of %zu bytes, the limit is %zu with those before",
            store_reply_encoded_size(reply), peers->limits.queued_reply_bytes);
        dismiss(peer, reason);
        return;
    }
    if (!is_current) {
        tcp_stream_send(&peer->stream, bytes_slice(buffer));
        reset_buffer(buffer);
    } else if (buffer->length >= COLLECTED_BYTES) {
        send_collected(peers);
    }
}

static void carry_out_effects(struct store_peers *peers) {
    peers->is_carrying_out = true;
    for (size_t i = 0; i < peers->effects.count; i++) {
        const struct store_effect *effect = &peers->effects.items[i];
        struct store_peer *peer = effect->connection->owner;
        if (peer->stream.is_closed) {
            continue;
        }
        switch (effect->kind) {
        case STORE_EFFECT_REPLY:
            reply_to(peers, peer, &effect->reply);
            break;
        case STORE_EFFECT_CLOSE:
            dismiss_and_say(peer, effect->reason,
                peers->effects.is_full ? client_log_say_full : client_log_say);
            break;
        }
    }
    peers->is_carrying_out = false;
    remove_ended_presence(peers);
}

/* Updates presence. A presence key may move to another connection; the old connection is not
 * closed. */
static void update_presence(struct store_peer *peer, const struct store_request *request) {
    struct store_peers *peers = peer->peers;
    const struct store_presence_key *key =
        store_presence_note(peers->presence, &peer->holder, request);
    if (key != NULL && peers->observer.beat != NULL) {
        peers->observer.beat(peers->observer.context, key->name, key->value);
    }
}

/* Reports writes by clients without a presence key. Clients with one tell the host about their
 * writes in their own way. Each node that joins asks the store to create the record before it
 * announces its presence, which writes nothing where there is a record. */
static void report_watched_write(
    const struct store_peer *peer, const struct store_request *request) {
    const struct store_peers *peers = peer->peers;
    if (peers->watched_key != NULL && peer->holder.first == NULL &&
        slice_equals(request->key, slice_from_string(peers->watched_key)) &&
        store_effects_have_written(&peers->effects, request) &&
        peers->observer.watched_written != NULL) {
        peers->observer.watched_written(peers->observer.context);
    }
}

/* Carries out one request at the front of `input`. Returns how many bytes it took; 0 when no
 * request is complete or the client has been closed. */
static size_t serve_one(struct store_peer *peer, struct slice input, size_t *out_needed) {
    struct store_peers *peers = peer->peers;
    struct store_reading reading;
    enum failure_code code = store_reader_next(&peer->reader, &peers->gate, input, &reading);
    (void)!bytes_append(&peers->replies, reading.reply, reading.reply_length);
    if (code == FAILURE_INCOMPLETE || (code == FAILURE_NONE && !reading.is_request)) {
        *out_needed = reading.decoded.needed;
        return reading.decoded.consumed;
    }
    const struct store_request *request = &reading.decoded.request;
    const char *objection = code == FAILURE_NONE
                                ? store_presence_objection(peers->presence, request)
                                : reading.decoded.reason;
    if (objection != NULL) {
        dismiss(peer, objection);
        return 0;
    }
    make_room(peers, reading.decoded.consumed);
    store_effects_reset(&peers->effects);
    store_table_apply(peers->table, &peer->connection, request, &peers->effects);
    tally_add(peers->operations, 1);
    update_presence(peer, request);
    report_watched_write(peer, request);
    carry_out_effects(peers);
    return peer->stream.is_closed ? 0 : reading.decoded.consumed;
}

/* Whether the client is served no further request in this turn, or until it has read more. */
static bool has_enough(const struct store_peer *peer) {
    return peer->peers->turn_reply_bytes >= TURN_REPLY_BYTES ||
           tcp_stream_unsent(&peer->stream) > peer->peers->limits.unread_bytes;
}

static size_t received(struct tcp_stream *stream, struct slice input, size_t *out_needed) {
    struct store_peer *peer = peer_of(stream);
    struct store_peers *peers = peer->peers;
    peers->current = peer;
    peers->turn_reply_bytes = 0;
    store_room_share(&peers->room, uncounted(peers));
    size_t consumed = 0;
    size_t length = 1;
    while (length > 0 && consumed < input.length && !has_enough(peer)) {
        length = serve_one(peer, slice_from(input, consumed), out_needed);
        consumed += length;
    }
    store_room_share(&peers->room, uncounted(peers));
    send_collected(peers);
    if (has_enough(peer)) {
        tcp_stream_hold(stream);
    }
    peers->current = NULL;
    return consumed;
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
    struct store_peer *peer = peer_of(stream);
    if (tcp_silence_is(failure->system_error)) {
        char *silence = text_format("no answer for %g s (%s)",
            duration_seconds(peer->peers->silence_timeout), failure->message);
        client_log_say(&peer->peers->client_log, &peer->address, silence);
        free(silence);
    } else if (failure->code == FAILURE_LIMIT) {
        report_limit(peer, failure->message);
    }
    forget_client(peer);
}

static void free_when_empty(struct store_peers *peers) {
    if (peers->is_freed && peers->peer_count == 0) {
        tcp_stream_pool_clear(&peers->pool);
        free(peers);
    }
}

static void released(struct tcp_stream *stream) {
    struct store_peer *peer = peer_of(stream);
    struct store_peers *peers = peer->peers;
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
    .received = received,
    .ended = ended,
    .released = released,
};

/* Sets the key by which clients can check that this server supports presence. */
static void set_served_key(struct store_peers *peers) {
    const char *key = store_presence_served_key(peers->presence);
    if (key[0] != '\0') {
        apply_own(peers, &(struct store_request){.operation = STORE_SET,
                             .key = slice_from_string(key),
                             .value = slice_from_string("1")});
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
    store_table_reserve_for(peers->table, settings->own_prefix);
    peers->presence = store_presence_new(settings->presence_prefix);
    peers->operations = settings->operations;
    peers->observer = settings->observer;
    store_gate_init(&peers->gate, settings->key, settings->guarded_prefix);
    peers->watched_key = memory_duplicate_string(settings->watched_key);
    peers->silence_timeout = settings->silence_timeout;
    tcp_stream_pool_init(
        &peers->pool, &stream_owner, limits->queued_reply_bytes, limits->memory_bytes);
    store_room_init(&peers->room, loop, limits->memory_bytes, peers->table, &peers->pool);
    peers->pool.turn_bytes = TURN_REQUEST_BYTES;
    peers->pool.held_above = limits->unread_bytes;
    bytes_init(&peers->replies, limits->queued_reply_bytes);
    bytes_init(&peers->single, limits->queued_reply_bytes);
    set_served_key(peers);
    return peers;
}

void store_peers_free(struct store_peers *peers) {
    if (peers == NULL) {
        return;
    }
    peers->observer = (struct store_server_observer){0};
    store_peers_close_all(peers);
    store_room_clear(&peers->room);
    store_table_free(peers->table);
    store_presence_free(peers->presence);
    free(peers->watched_key);
    store_gate_clear(&peers->gate);
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
    report_connections(peers);
}

void store_peers_add(struct store_peers *peers, int fd_taken, const union tcp_address *address) {
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
    link_peer(peers, peer);
}

size_t store_peers_count(const struct store_peers *peers) {
    return peers->open_count;
}

void store_peers_drop(struct store_peers *peers, const char *name) {
    const struct store_presence_holder *holder = store_presence_find(peers->presence, name);
    if (holder != NULL) {
        dismiss(holder->owner, "let go: the node it speaks for has stalled");
    }
}

/* A peer that is dismissed stays in the list until the loop has let go of it. */
void store_peers_look(struct store_peers *peers) {
    struct instant now = event_loop_now(peers->loop);
    for (struct store_peer *peer = peers->first; peer != NULL; peer = peer->next) {
        if (peer->holder.first == NULL || peer->stream.is_closed) {
            continue;
        }
        struct duration silent_for = tcp_silence_measure(peer->stream.fd);
        if (connection_silence_look(&peer->silence, silent_for, peers->silence_timeout, now)) {
            char *silence = text_format("no answer for %g s", duration_seconds(silent_for));
            dismiss(peer, silence);
            free(silence);
        }
    }
}

void store_peers_close_all(struct store_peers *peers) {
    for (struct store_peer *peer = peers->first; peer != NULL; peer = peer->next) {
        close_peer(peer);
    }
}

void store_peers_catch_up(struct store_peers *peers) {
    for (struct store_peer *peer = peers->first; peer != NULL; peer = peer->next) {
        tcp_stream_catch_up(&peer->stream);
        if (peer->stream.is_held) {
            dismiss(peer, "it has not read its replies by the time the store was renewed");
        }
    }
}

void store_peers_renew_table(struct store_peers *peers, const char *kept_prefix) {
    store_effects_reset(&peers->effects);
    store_table_renew(peers->table, slice_from_string(kept_prefix), &peers->effects);
    carry_out_effects(peers);
    set_served_key(peers);
    store_room_share(&peers->room, 0);
}
