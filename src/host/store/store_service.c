/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/store/store_service.h"

#include <stdio.h>

#include "host/store/munge_identity.h"
#include "host/store/store_debtors.h"
#include "host/store/store_lookout.h"
#include "host/store/store_probation.h"
#include "wire/store/store_reply_codec.h"

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

void store_service_carry_out(struct store_peers *peers) {
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
    peer->errand = NULL;
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
    enum failure_code code =
        peers->errands != NULL ? FAILURE_NONE : errands_new(peers->loop, &peers->errands, &failure);
    if (code == FAILURE_NONE) {
        code = munge_identity_ask(
            peers->errands, &question, munge_has_answered, peer, &peer->errand, &failure);
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

size_t store_service_receive(struct tcp_stream *stream, struct slice input, size_t *out_needed) {
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
