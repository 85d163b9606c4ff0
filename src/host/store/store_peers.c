/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/store/store_peers.h"

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "core/store/store_request.h"
#include "host/network/tcp_stream.h"
#include "host/store/store_admission.h"
#include "wire/store/store_codec.h"

static void store_probation_end(struct store_peer *peer);

static void client_log_init(
    struct client_log *client_log, struct event_loop *loop, const struct log *log) {
    *client_log = (struct client_log){.loop = loop, .log = log};
}

/* The line, which the caller frees; NULL: it is left out. */
static char *compose(struct client_log *client_log, struct log_throttle *throttle,
    const union tcp_address *address, const char *what) {
    struct text line = {0};
    char client[TCP_ADDRESS_TEXT_SIZE];
    uint64_t held_back;
    if (!log_throttle_admits(throttle, event_loop_now(client_log->loop), &held_back)) {
        return NULL;
    }
    tcp_address_describe(address, client);
    text_append_format(&line, "store: client %s: %s", client, what);
    if (held_back > 0) {
        text_append_format(&line, " (%" PRIu64 " more such lines were left out)", held_back);
    }
    return text_take(&line);
}

void client_log_say(
    struct client_log *client_log, const union tcp_address *address, const char *what) {
    char *line = compose(client_log, &client_log->throttle, address, what);
    if (line != NULL) {
        log_warning(client_log->log, "%s", line);
        free(line);
    }
}

/* An error: a request of the client was refused because the store is full. The line ends with the
 * option that gives a store more memory. */
static void client_log_say_full(
    struct client_log *client_log, const union tcp_address *address, const char *what) {
    char *line = compose(client_log, &client_log->full, address, what);
    if (line != NULL) {
        log_error(client_log->log, "%s; --store-memory gives it more", line);
        free(line);
    }
}

/* Memory return. */

#define MEMORY_RETURN_LEAST_BYTES ((size_t)16 << 20)

#define MEMORY_RETURN_DELAY duration_from_milliseconds(500)

struct memory_return {
    struct event_loop *loop;
    struct event_timer *timer;
    struct duration delay;
    size_t bytes;
    size_t most; /* since memory was given back */
    bool is_due; /* the timer runs */
};

static void give_back(void *context) {
    struct memory_return *memory_return = context;
    memory_return->is_due = false;
    memory_return->most = memory_return->bytes;
#ifdef __GLIBC__
    (void)malloc_trim(0);
#endif
}

/* Never NULL. */
static struct memory_return *memory_return_new(struct event_loop *loop, struct duration delay) {
    struct memory_return *memory_return = memory_allocate(sizeof *memory_return);
    memory_return->loop = loop;
    memory_return->timer = event_timer_new(loop, give_back, memory_return);
    memory_return->delay = delay;
    return memory_return;
}

/* Accepts NULL. */
static void memory_return_free(struct memory_return *memory_return) {
    if (memory_return != NULL) {
        event_timer_free(memory_return->timer);
        free(memory_return);
    }
}

/* So many bytes are in use now. Cheap. When this is a quarter less than the most since memory was
 * given back last, and MEMORY_RETURN_LEAST_BYTES less, memory is given back after the delay. */
static void memory_return_note(struct memory_return *memory_return, size_t bytes) {
    memory_return->bytes = bytes;
    if (bytes > memory_return->most) {
        memory_return->most = bytes;
    }
    size_t freed = memory_return->most - bytes;
    if (!memory_return->is_due && freed >= MEMORY_RETURN_LEAST_BYTES &&
        freed >= memory_return->most / 4) {
        memory_return->is_due = true;
        event_timer_set(memory_return->timer,
            instant_after(event_loop_now(memory_return->loop), memory_return->delay));
    }
}

/* Room. */

#define PART_KEPT_FREE 16
#define MODEST_BYTES ((size_t)1 << 20)

/* Borrows the table and the pool. */
static void store_room_init(struct store_room *room, struct event_loop *loop, size_t memory_bytes,
    struct store_table *table, struct tcp_stream_pool *pool) {
    *room = (struct store_room){
        memory_bytes, table, pool, memory_return_new(loop, MEMORY_RETURN_DELAY)};
}

static void store_room_clear(struct store_room *room) {
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

/* Tells table and pool how much of the limit each may use now. `uncounted` bytes of the buffers are
 * not counted: the input of the client that is being served, which the table may take over. */
static void store_room_share(struct store_room *room, size_t uncounted) {
    size_t buffered = room->pool->buffered_bytes;
    room->pool->buffer_ceiling = room_of_buffers(room);
    store_table_reserve_memory(room->table, buffered - uncounted);
    memory_return_note(room->memory_return, store_table_memory(room->table) + buffered);
}

/* A client that holds no more than this in its buffers is not closed to make room. */
static size_t store_room_modest(const struct store_room *room) {
    size_t least = store_memory_reserve(room->memory_bytes) / 2;
    return least < MODEST_BYTES ? least : MODEST_BYTES;
}

/* Whether buffers have to be given up so that the table can grow by `wanted` bytes, and by a little
 * more. False when there is not much in the buffers. `uncounted` as above. */
static bool store_room_lacks(const struct store_room *room, size_t uncounted, size_t wanted) {
    size_t ceiling = room_of_buffers(room);
    size_t buffered = room->pool->buffered_bytes - uncounted;
    wanted += ceiling / PART_KEPT_FREE;
    return buffered > store_room_modest(room) && (wanted > ceiling || buffered > ceiling - wanted);
}

/* A buffer has passed its limit, as `message` says. Appends the message. Where it is because the
 * table leaves no room, also what fills the table, and returns true. */
static bool store_room_explain(
    const struct store_room *room, const char *message, struct text *out) {
    text_append(out, message);
    if (store_table_memory(room->table) < room->memory_bytes / 2) {
        return false;
    }
    text_append(out, ": ");
    store_table_describe(room->table, out);
    return true;
}

/* Peer. */

/* Replies to requests that arrived together are collected up to about this size. A buffer that grew
 * larger for one reply is freed. */
#define STORE_PEER_COLLECTED_BYTES ((size_t)65536)

/* The client that has this stream. */
static struct store_peer *store_peer_of(struct tcp_stream *stream) {
    return (struct store_peer *)(void *)stream;
}

/* Applies a request of the host itself; its reply is not used. */
static void store_peers_apply_own(struct store_peers *peers, const struct store_request *request) {
    struct store_connection own = {0};
    store_effects_reset(&peers->presence_effects);
    store_table_apply(peers->table, &own, request, &peers->presence_effects);
}

/* Removes the presence keys of closed clients from the table, and calls the observer's `gone`. Does
 * so later while effects are carried out. */
static void store_peers_remove_ended(struct store_peers *peers) {
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

/* Calls the observer's `connections`. */
static void store_peers_report_connections(struct store_peers *peers) {
    if (peers->observer.connections != NULL) {
        peers->observer.connections(
            peers->observer.context, peers->open_count - peers->unproven.count);
    }
}

/* Removes a client whose stream has closed from the table and from presence. */
static void store_peer_forget(struct store_peer *peer) {
    struct store_peers *peers = peer->peers;
    if (peer->call != NULL) {
        blocking_pool_drop(peers->blocking, peer->call);
        peer->call = NULL;
    }
    store_probation_end(peer);
    store_table_disconnect(peers->table, &peer->connection);
    store_reader_clear(&peer->reader);
    store_presence_leave(peers->presence, &peer->holder);
    peers->open_count--;
    store_peers_remove_ended(peers);
    store_peers_report_connections(peers);
}

/* Closes a client without a word. */
static void store_peer_close(struct store_peer *peer) {
    if (!peer->stream.is_closed) {
        tcp_stream_close(&peer->stream);
        store_peer_forget(peer);
    }
}

/* Empties a buffer of replies; frees it when it has grown large. */
static void store_peers_reset_buffer(struct bytes *buffer) {
    buffer->length = 0;
    if (buffer->capacity > 2 * STORE_PEER_COLLECTED_BYTES) {
        bytes_clear(buffer);
    }
}

/* Sends the collected replies to the client that is being served. Where it waits for none of them,
 * they go with what is sent next, or a moment later. */
static void store_peers_send_collected(struct store_peers *peers) {
    peers->turn_reply_bytes += peers->replies.length;
    if (peers->unhurried_bytes == peers->replies.length) {
        tcp_stream_send_ahead(&peers->current->stream, bytes_slice(&peers->replies));
    } else {
        tcp_stream_send(&peers->current->stream, bytes_slice(&peers->replies));
    }
    peers->unhurried_bytes = 0;
    store_peers_reset_buffer(&peers->replies);
}

/* The same; `say` logs the reason. */
static void store_peer_dismiss_and_say(struct store_peer *peer, const char *reason,
    void (*say)(struct client_log *log, const union tcp_address *address, const char *what)) {
    if (peer == peer->peers->current) {
        store_peers_send_collected(peer->peers);
    }
    if (!peer->stream.is_closed) {
        store_peer_close(peer);
        say(&peer->peers->client_log, &peer->address, reason);
    }
}

/* Closes a client for a reason, which is logged. Its replies to earlier requests are sent first. */
static void store_peer_dismiss(struct store_peer *peer, const char *reason) {
    store_peer_dismiss_and_say(peer, reason, client_log_say);
}

/* Probation. */

#define USUAL_MAXIMUM 128
#define LEAST_MAXIMUM 8

/* Whether it is munge that is waited for, which has its own patience. */
static bool is_being_checked(const struct store_peer *peer) {
    return peer->reader.proof.stage == STORE_PROOF_STAGE_CHECKING;
}

static struct instant deadline_of(const struct store_peer *peer) {
    return instant_after(peer->came_at, duration_from_seconds(STORE_PROBATION_SECONDS));
}

/* The oldest has the first deadline. */
static void set_timer(struct store_peers *peers) {
    struct store_peer *peer = peers->unproven.oldest;
    while (peer != NULL && is_being_checked(peer)) {
        peer = peer->unproven_next;
    }
    if (peer != NULL) {
        event_timer_set(peers->unproven.timer, deadline_of(peer));
    } else {
        event_timer_stop(peers->unproven.timer);
    }
}

static void dismiss_late(void *context) {
    struct store_peers *peers = context;
    struct instant now = event_loop_now(peers->loop);
    struct store_peer *next;
    for (struct store_peer *peer = peers->unproven.oldest; peer != NULL; peer = next) {
        next = peer->unproven_next;
        if (instant_is_before(now, deadline_of(peer))) {
            break;
        }
        if (!is_being_checked(peer)) {
            store_peer_dismiss(peer, "turned away: it has not proved itself within 10 s");
        }
    }
    set_timer(peers);
}

/* `maximum` 0: some. */
static void store_probation_init(struct store_peers *peers, size_t maximum) {
    peers->unproven.maximum = maximum == 0              ? USUAL_MAXIMUM
                              : maximum < LEAST_MAXIMUM ? LEAST_MAXIMUM
                                                        : maximum;
    peers->unproven.timer = event_timer_new(peers->loop, dismiss_late, peers);
}

static void store_probation_clear(struct store_peers *peers) {
    event_timer_free(peers->unproven.timer);
    peers->unproven.timer = NULL;
}

/* Closes the oldest of this address where it has its part of the room, or the oldest of all where
 * there is none. */
static void make_way_for(const struct store_peer *newcomer) {
    struct store_peers *peers = newcomer->peers;
    struct store_peer *oldest_of_address = NULL;
    size_t count_of_address = 0;
    for (struct store_peer *peer = peers->unproven.oldest; peer != NULL;
         peer = peer->unproven_next) {
        if (tcp_address_is_same_host(&peer->address, &newcomer->address)) {
            oldest_of_address = oldest_of_address == NULL ? peer : oldest_of_address;
            count_of_address++;
        }
    }
    struct store_peer *given_up = NULL;
    if (count_of_address >= peers->unproven.maximum / 2) {
        given_up = oldest_of_address;
    } else if (peers->unproven.count >= peers->unproven.maximum) {
        given_up = peers->unproven.oldest;
    }
    if (given_up != NULL) {
        store_peer_dismiss(
            given_up, "turned away: many have come since that have not proved themselves either");
    }
}

/* A client has come. May close others. */
static void store_probation_begin(struct store_peer *peer) {
    struct store_peers *peers = peer->peers;
    if (peers->unproven.timer == NULL) {
        return;
    }
    make_way_for(peer);
    peer->is_on_probation = true;
    peer->came_at = event_loop_now(peers->loop);
    peer->unproven_before = peers->unproven.newest;
    peer->unproven_next = NULL;
    *(peer->unproven_before != NULL ? &peer->unproven_before->unproven_next
                                    : &peers->unproven.oldest) = peer;
    peers->unproven.newest = peer;
    peers->unproven.count++;
    if (peers->unproven.oldest == peer) {
        set_timer(peers);
    }
}

/* It has proved itself, if it has. */
static void store_probation_note(struct store_peer *peer) {
    if (peer->is_on_probation && peer->reader.proof.stage == STORE_PROOF_STAGE_PROVEN) {
        store_probation_end(peer);
        store_peers_report_connections(peer->peers);
    }
}

/* It has proved itself, or is gone. */
static void store_probation_end(struct store_peer *peer) {
    struct store_peers *peers = peer->peers;
    if (!peer->is_on_probation) {
        return;
    }
    peer->is_on_probation = false;
    *(peer->unproven_before != NULL ? &peer->unproven_before->unproven_next
                                    : &peers->unproven.oldest) = peer->unproven_next;
    *(peer->unproven_next != NULL ? &peer->unproven_next->unproven_before
                                  : &peers->unproven.newest) = peer->unproven_before;
    peers->unproven.count--;
}

/* Whose buffers are given up when the memory of a store is needed: those of the clients that hold
 * most, with unfinished requests or unread replies. */

/* The bytes of the client being served that count for nobody: what the table takes leaves its input
 * buffer. */
static size_t store_debtors_uncounted(const struct store_peers *peers) {
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

/* Closes the clients that hold most where their buffers leave no room for `wanted` bytes. The one
 * being served is not closed, nor is one that holds little. */
static void store_debtors_make_room(struct store_peers *peers, size_t wanted) {
    while (store_room_lacks(&peers->room, store_debtors_uncounted(peers), wanted)) {
        struct store_peer *largest = largest_peer(peers, NULL);
        if (largest == NULL || buffered(largest) <= store_room_modest(&peers->room)) {
            return;
        }
        give_up(largest);
    }
}

/* As `make_room` of tcp_stream_owner: makes room for what is being received from a client or sent
 * to it, and closes only clients that hold more than this one would then. */
static void store_debtors_make_stream_room(struct tcp_stream *stream, size_t wanted) {
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

/* Lookout. */

/* A client that gives signs of life gives one in each second, unless its connection is calm. */
#define SIGNLESS_SECONDS 3

/* The list. */

static void add(struct store_peer *peer) {
    struct store_peers *peers = peer->peers;
    if (peer->is_looked_at) {
        return;
    }
    peer->is_looked_at = true;
    peer->looked_at_before = NULL;
    peer->looked_at_next = peers->looked_at;
    if (peers->looked_at != NULL) {
        peers->looked_at->looked_at_before = peer;
    }
    peers->looked_at = peer;
}

/* The client is looked at no more. For one that ends: when the loop has let go of it. */
static void store_lookout_forget(struct store_peer *peer) {
    if (!peer->is_looked_at) {
        return;
    }
    peer->is_looked_at = false;
    if (peer->looked_at_before != NULL) {
        peer->looked_at_before->looked_at_next = peer->looked_at_next;
    } else {
        peer->peers->looked_at = peer->looked_at_next;
    }
    if (peer->looked_at_next != NULL) {
        peer->looked_at_next->looked_at_before = peer->looked_at_before;
    }
}

/* Signs of life. */

static void end_calm(struct store_peer *peer) {
    if (peer->is_calm) {
        peer->is_calm = false;
        tcp_silence_watch(peer->stream.fd, peer->peers->silence_timeout);
    }
}

/* The client has sent this request. */
static void store_lookout_note(struct store_peer *peer, const struct store_request *request) {
    if (request->operation == STORE_PING && request->nonce == STORE_SIGN_OF_LIFE) {
        peer->gives_signs = true;
        peer->sign_given = event_loop_now(peer->peers->loop);
        end_calm(peer);
    }
}

static void leave_signs(struct store_peer *peer, bool leaves) {
    if (leaves != peer->leaves_signs && !peer->stream.is_closed) {
        peer->leaves_signs = leaves;
        tcp_stream_expect(&peer->stream, leaves ? STORE_SIGN_BYTES + 1 : 1);
    }
}

/* What has arrived was served, and nothing is left of it. A sign of life that comes alone need not
 * wake the server. */
static void store_lookout_serve(struct store_peer *peer, bool is_all_served) {
    bool is_present = peer->holder.first != NULL && !peer->stream.is_closed;
    if (is_present && !peer->is_calm) {
        add(peer);
    }
    leave_signs(peer, is_all_served && peer->gives_signs && is_present && !peer->is_calm &&
                          !peer->stream.is_held);
}

/* Looking. */

/* The machine is gone after as long as where it is looked at, or up to half a second later. */
static void begin_calm(struct store_peer *peer) {
    struct duration doubt = duration_from_milliseconds(CONNECTION_SILENCE_DOUBT_MILLISECONDS);
    store_lookout_forget(peer);
    peer->is_calm = true;
    leave_signs(peer, false);
    tcp_silence_leave(peer->stream.fd,
        (struct duration){peer->peers->silence_timeout.nanoseconds + doubt.nanoseconds});
}

static bool gives_no_more_signs(const struct store_peer *peer, struct instant now) {
    return peer->gives_signs &&
           instant_is_before(
               instant_after(peer->sign_given, duration_from_seconds(SIGNLESS_SECONDS)), now);
}

/* `gone` of the client's presence keys follows because its machine is silent, or it has stalled. */
static void store_lookout_report_silent(const struct store_peer *peer) {
    const struct store_server_observer *observer = &peer->peers->observer;
    for (const struct store_presence_key *key = peer->holder.first; key != NULL; key = key->next) {
        if (observer->silent != NULL) {
            observer->silent(observer->context, key->name);
        }
    }
}

/* Returns after how long to look at this client again. */
static struct duration judge(struct store_peer *peer, struct instant now) {
    struct duration limit = peer->peers->silence_timeout;
    struct duration silent_for = tcp_silence_measure(peer->stream.fd).silent_for;
    if (connection_silence_look(&peer->silence, silent_for, limit, now)) {
        char *silence = text_format("no answer for %g s", duration_seconds(silent_for));
        store_lookout_report_silent(peer);
        store_peer_dismiss(peer, silence);
        free(silence);
        return DURATION_FOREVER;
    }
    if (gives_no_more_signs(peer, now) && !connection_silence_is_unusual(silent_for)) {
        begin_calm(peer);
        return DURATION_FOREVER;
    }
    return connection_silence_pause(&peer->silence, silent_for, limit, now);
}

static struct duration look_at(struct store_peer *peer, struct instant now) {
    if (peer->leaves_signs) {
        tcp_stream_catch_up(&peer->stream);
    }
    bool is_over = peer->holder.first == NULL || peer->stream.is_closed;
    return is_over || connection_silence_rests(&peer->silence, now) ? DURATION_FOREVER
                                                                    : judge(peer, now);
}

/* A client that is closed meanwhile stays in the list until the loop has let go of it. */
struct duration store_lookout_look(struct store_peers *peers) {
    struct instant now = event_loop_now(peers->loop);
    struct duration pause = duration_from_milliseconds(CONNECTION_SILENCE_LOOK_MILLISECONDS);
    struct store_peer *next;
    for (struct store_peer *peer = peers->looked_at; peer != NULL; peer = next) {
        next = peer->looked_at_next;
        struct duration own = look_at(peer, now);
        pause = own.nanoseconds < pause.nanoseconds ? own : pause;
    }
    return pause;
}

/* What a store server makes of the bytes of its clients: it carries out their requests, collects
 * the replies, and keeps presence. In one turn of the loop a client gets a share. */

/* What one client may get in one turn of the loop. */
#define TURN_REPLY_BYTES ((size_t)262144)

static void reply_to(
    struct store_peers *peers, struct store_peer *peer, const struct store_reply *reply) {
    bool is_current = peer == peers->current;
    struct bytes *buffer = is_current ? &peers->replies : &peers->single;
    if (store_reply_encode(reply, buffer) != FAILURE_NONE) {
        char reason[128];
        snprintf(reason, sizeof reason, "a reply of %zu bytes, the limit is %zu with those before",
            store_reply_encoded_size(reply), peers->limits.queued_reply_bytes);
        store_peer_dismiss(peer, reason);
        return;
    }
    if (!is_current) {
        tcp_stream_send(&peer->stream, bytes_slice(buffer));
        store_peers_reset_buffer(buffer);
    } else if (buffer->length >= STORE_PEER_COLLECTED_BYTES) {
        store_peers_send_collected(peers);
    }
}

/* Sends the replies and closes the clients of the step that the table has made last. */
static void store_service_carry_out(struct store_peers *peers) {
    peers->is_carrying_out = true;
    for (size_t i = 0; i < peers->effects.count; i++) {
        const struct store_effect *effect = &peers->effects.items[i];
        struct store_peer *peer = effect->connection->owner;
        if (peer->stream.is_closed) {
            continue;
        }
        switch (effect->kind) {
        case STORE_EFFECT_REPLY:
            peers->unhurried_bytes +=
                effect->may_wait ? store_reply_encoded_size(&effect->reply) : 0;
            reply_to(peers, peer, &effect->reply);
            break;
        case STORE_EFFECT_CLOSE:
            store_peer_dismiss_and_say(peer, effect->reason,
                peers->effects.is_full ? client_log_say_full : client_log_say);
            break;
        }
    }
    peers->is_carrying_out = false;
    store_peers_remove_ended(peers);
}

/* A client that is refused goes on, unless the table closes it for want of a true reply. */
static void refuse(
    struct store_peer *peer, const struct store_request *request, const char *reason) {
    struct store_peers *peers = peer->peers;
    store_effects_reset(&peers->effects);
    store_table_refuse(peers->table, &peer->connection, request, reason, &peers->effects);
    store_service_carry_out(peers);
    if (!peer->stream.is_closed) {
        client_log_say(&peers->client_log, &peer->address, reason);
    }
}

/* At which of this machine's addresses it was reached, by a node of another machine. */
static void report_reached(struct store_peer *peer) {
    const struct store_server_observer *observer = &peer->peers->observer;
    char text[INET6_ADDRSTRLEN];
    if (peer->is_reached_told || observer->reached == NULL) {
        return;
    }
    peer->is_reached_told = true;
    if (tcp_address_write_own(peer->stream.fd, text)) {
        observer->reached(observer->context, text);
    }
}

static void update_presence(struct store_peer *peer, const struct store_request *request) {
    struct store_peers *peers = peer->peers;
    const struct store_presence_key *key =
        store_presence_note(peers->presence, &peer->holder, request);
    if (key != NULL) {
        report_reached(peer);
    }
    if (key != NULL && peers->observer.beat != NULL) {
        peers->observer.beat(peers->observer.context, key->name, key->value);
    }
}

static bool is_proven(const struct store_peer *peer) {
    return peer->reader.proof.stage == STORE_PROOF_STAGE_PROVEN;
}

/* Who has proved to be of the job is Muster's: torchrun's nodes cannot prove anything. */
static bool is_agent(const struct store_peer *peer) {
    return peer->is_agent || is_proven(peer);
}

/* A node that would join the job, and does not speak as an agent of Muster's does. */
static bool is_stranger(const struct store_peer *peer, const struct store_request *request) {
    const struct store_peers *peers = peer->peers;
    bool asks = request->operation == STORE_GET || request->operation == STORE_COMPARE_SET;
    return peers->stranger_answer != NULL && !is_agent(peer) && asks &&
           slice_equals(request->key, slice_from_string(peers->watched_key));
}

static void answer_stranger(struct store_peer *peer) {
    struct store_peers *peers = peer->peers;
    const struct store_reply reply = {
        .kind = STORE_REPLY_BLOB, .blob = slice_from_string(peers->stranger_answer)};
    reply_to(peers, peer, &reply);
    if (!peer->is_turned_away) {
        peer->is_turned_away = true;
        client_log_say(&peers->client_log, &peer->address,
            "turned away: it is a node of torchrun's, which cannot be in a job whose store moves "
            "from node to node; with nodes of torchrun's use --rdzv-backend c10d");
    }
}

static void note_greeting(struct store_peer *peer, const struct store_request *request) {
    peer->is_agent = peer->is_agent ||
                     (request->operation == STORE_PING && request->nonce == STORE_PROOF_OFFERED);
}

/* Reports writes by clients without a presence key. Clients with one tell the host about their
 * writes in their own way. */
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

static void apply(struct store_peer *peer, const struct store_request *request) {
    struct store_peers *peers = peer->peers;
    bool is_trusted = peers->gate.key == NULL || is_proven(peer);
    peer->connection.hidden_prefix = is_trusted ? (struct slice){0} : peers->gate.guarded_prefix;
    store_effects_reset(&peers->effects);
    store_table_apply(peers->table, &peer->connection, request, &peers->effects);
    tally_add(peers->operations, 1);
    update_presence(peer, request);
    note_greeting(peer, request);
    store_lookout_note(peer, request);
    report_watched_write(peer, request);
    store_service_carry_out(peers);
}

/* Why a store that stands by closes a client, or NULL. */
static const char *standby_objection(
    const struct store_peers *peers, const struct store_request *request) {
    bool is_asking = request->operation == STORE_GET &&
                     slice_equals(request->key, slice_from_string(peers->standby_key));
    bool is_greeting = request->operation == STORE_VALIDATE || request->operation == STORE_PING;
    return is_asking || is_greeting
               ? NULL
               : "turned away: this node does not host the job's store at present";
}

/* Such a node's record is another one, and its launcher exchanges ranks in another way. */
static bool is_old_node(const struct store_peer *peer, const struct store_request *request) {
    struct slice own = slice_from_string(peer->peers->own_prefix);
    return peer->reader.decoder.is_old && own.length > 0 && store_request_touches(request, own);
}

/* Why a request closes its client, or NULL. */
static const char *objection_to(
    const struct store_peer *peer, const struct store_request *request) {
    const struct store_peers *peers = peer->peers;
    const char *objection = peers->is_standing_by ? standby_objection(peers, request) : NULL;
    if (objection == NULL && is_old_node(peer, request)) {
        objection = "turned away: it is a node of a torchrun older than 2.1, which cannot be in a "
                    "job with nodes of Muster's; workers of such a PyTorch can";
    }
    return objection != NULL ? objection : store_presence_objection(peers->presence, request);
}

/* The proof by munge. */

static void munge_has_answered(
    void *context, const struct store_credential_answer *answer, const char *words) {
    struct store_peer *peer = context;
    struct bytes reply = {0};
    peer->call = NULL;
    struct store_proof_step step =
        store_credential_verdict_given(&peer->reader.proof, answer, &reply);
    store_probation_note(peer);
    tcp_stream_send(&peer->stream, bytes_slice(&reply));
    bytes_clear(&reply);
    if (step.outcome == STORE_PROOF_FAILED) {
        char reason[512];
        bool has_words = words[0] != '\0';
        snprintf(reason, sizeof reason, "%s%s%s%s", step.reason, has_words ? " (" : "", words,
            has_words ? ")" : "");
        store_peer_dismiss(peer, reason);
    }
}

static void ask_munge(struct store_peer *peer, struct slice presented) {
    struct store_peers *peers = peer->peers;
    struct failure failure = {0};
    const struct munge_question question = {
        .key = peers->gate.key,
        .proof = &peer->reader.proof,
        .presented = presented,
        .makes_own = true,
        .side = STORE_CREDENTIAL_OF_SERVER,
    };
    enum failure_code code = peers->blocking != NULL
                                 ? FAILURE_NONE
                                 : blocking_pool_new(peers->loop, &peers->blocking, &failure);
    if (code == FAILURE_NONE) {
        code = munge_identity_ask(
            peers->blocking, &question, munge_has_answered, peer, &peer->call, &failure);
    }
    if (code != FAILURE_NONE) {
        store_peer_dismiss(peer, failure.message);
    }
}

/* Carries out one request at the front of `input`. Returns how many bytes it took; 0 when no
 * request is complete or the client has been closed. */
static size_t serve_one(struct store_peer *peer, struct slice input, size_t *out_needed) {
    struct store_peers *peers = peer->peers;
    struct store_reading reading;
    enum failure_code code = store_reader_next(&peer->reader, &peers->gate, input, &reading);
    (void)!bytes_append(&peers->replies, reading.reply, reading.reply_length);
    store_probation_note(peer);
    if (code == FAILURE_NONE && reading.presented.length > 0) {
        ask_munge(peer, reading.presented);
        return peer->stream.is_closed ? 0 : reading.decoded.consumed;
    }
    if (code == FAILURE_INCOMPLETE || (code == FAILURE_NONE && !reading.is_request)) {
        *out_needed = reading.decoded.needed;
        return reading.decoded.consumed;
    }
    const struct store_request *request = &reading.decoded.request;
    if (code == FAILURE_NONE && is_stranger(peer, request)) {
        answer_stranger(peer);
        return peer->stream.is_closed ? 0 : reading.decoded.consumed;
    }
    const char *objection =
        code == FAILURE_NONE ? objection_to(peer, request) : reading.decoded.reason;
    if (objection != NULL) {
        store_peer_dismiss(peer, objection);
        return 0;
    }
    const char *refusal = store_presence_refusal(peers->presence, &peer->holder, request);
    if (refusal != NULL) {
        refuse(peer, request, refusal);
    } else {
        store_debtors_make_room(peers, reading.decoded.consumed);
        apply(peer, request);
    }
    return peer->stream.is_closed ? 0 : reading.decoded.consumed;
}

/* Whether the client is served no further request in this turn, or until it has read more. */
static bool has_enough(const struct store_peer *peer) {
    return peer->peers->turn_reply_bytes >= TURN_REPLY_BYTES ||
           tcp_stream_unsent(&peer->stream) > peer->peers->limits.unread_bytes;
}

/* As `received` of tcp_stream_owner. */
static size_t store_service_receive(
    struct tcp_stream *stream, struct slice input, size_t *out_needed) {
    struct store_peer *peer = store_peer_of(stream);
    struct store_peers *peers = peer->peers;
    peers->current = peer;
    peers->turn_reply_bytes = 0;
    store_room_share(&peers->room, store_debtors_uncounted(peers));
    size_t consumed = 0;
    size_t length = 1;
    while (length > 0 && consumed < input.length && !has_enough(peer)) {
        length = serve_one(peer, slice_from(input, consumed), out_needed);
        consumed += length;
    }
    store_room_share(&peers->room, store_debtors_uncounted(peers));
    store_peers_send_collected(peers);
    if (has_enough(peer)) {
        tcp_stream_hold(stream);
    }
    store_lookout_serve(peer, consumed == input.length);
    peers->current = NULL;
    return consumed;
}

/* Peers. */

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
    blocking_pool_free(peers->blocking);
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
