/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/store/store_link.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "core/store/store_request.h"
#include "host/loop/blocking_pool.h"
#include "host/network/tcp_stream.h"
#include "host/store/store_admission.h"
#include "wire/store/store_codec.h"

#define STORE_LINK_AHEAD_MAXIMUM 16

/* What is answered before the expected reply. */
enum store_link_ahead {
    STORE_LINK_AHEAD_SIGN,
    STORE_LINK_AHEAD_ITEM,
    STORE_LINK_AHEAD_UNWANTED, /* an item that nobody waits for any more */
};

struct store_link {
    struct tcp_stream stream; /* first, so that a stream is its link */
    struct tcp_stream_pool pool;
    struct store_reply_decoder decoder;
    struct store_reply_decoder items;
    const struct store_link_owner *owner;
    void *context;
    union tcp_address address;
    struct duration silence_timeout;
    const struct store_key *key; /* or NULL */
    struct store_proof proof;
    struct event_loop *loop;
    struct blocking_pool *blocking; /* NULL until munge is asked */
    struct blocking_call *call;     /* munge is being asked; else NULL */
    bool is_proving;                /* what comes is a part of the proof */
    bool is_ready;
    bool expects_reply;
    struct connection_silence silence;
    struct connection_calm calm;
    enum store_link_ahead
        ahead[STORE_LINK_AHEAD_MAXIMUM]; /* in the order in which they are answered */
    size_t ahead_count;
    int signs;           /* of life among them */
    bool is_resting;     /* a QUEUE_POP waits at the server, behind all else */
    struct bytes rested; /* the bytes of that one, or of the last one */
    bool is_all_taken;   /* of what has come */
    size_t left;         /* so many bytes may stay in the kernel */
    bool is_freed;       /* the owner has freed it */
    bool is_released;    /* the loop has released it; the memory is freed when both are true */
};

static void store_link_end(struct store_link *link, enum failure_code code, const char *reason);
static void store_link_become_ready(struct store_link *link);

/* A store_link, as its parts share it: store_link has the connection and what is answered over it,
 * store_link_proof what comes before. No other module may read or write it. */

/* The part of a store_link before it is ready: what the server answers to the greeting, and the
 * proof of both sides (wire/store/store_proof.h), for which munge may have to be asked. */

/* munge need not answer any more. */
static void store_link_drop_question(struct store_link *link) {
    if (link->call != NULL) {
        blocking_pool_drop(link->blocking, link->call);
        link->call = NULL;
    }
}

/* What failed may succeed at another attempt: then the owner may make one. */
static void end_proof(
    struct store_link *link, const struct store_proof_step *step, const char *words) {
    char reason[512];
    bool is_token = link->key->kind == STORE_KEY_TOKEN;
    snprintf(reason, sizeof reason, "%s%s%s%s%s", step->reason,
        is_token ? "; give all nodes the same one, by MUSTER_JOB_TOKEN or --token-file" : "",
        words[0] != '\0' ? " (" : "", words, words[0] != '\0' ? ")" : "");
    store_link_end(link, step->may_pass ? FAILURE_DISCONNECTED : FAILURE_INVALID, reason);
}

static void munge_has_answered(
    void *context, const struct store_credential_answer *answer, const char *words) {
    struct store_link *link = context;
    struct bytes reply = {0};
    link->call = NULL;
    struct store_proof_step step = store_credential_answered(&link->proof, answer, &reply);
    if (step.outcome == STORE_PROOF_FAILED) {
        end_proof(link, &step, words);
    } else if (step.outcome == STORE_PROOF_DONE) {
        store_link_become_ready(link);
    } else {
        tcp_stream_send(&link->stream, bytes_slice(&reply));
    }
    bytes_clear(&reply);
}

static void ask_munge(struct store_link *link, struct slice presented) {
    struct failure failure = {0};
    const struct munge_question question = {
        .key = link->key,
        .proof = &link->proof,
        .presented = presented,
        .makes_own = presented.length == 0,
        .side = STORE_CREDENTIAL_OF_CLIENT,
    };
    enum failure_code code = link->blocking != NULL
                                 ? FAILURE_NONE
                                 : blocking_pool_new(link->loop, &link->blocking, &failure);
    if (code == FAILURE_NONE) {
        code = munge_identity_ask(
            link->blocking, &question, munge_has_answered, link, &link->call, &failure);
    }
    if (code != FAILURE_NONE) {
        store_link_end(link, code, failure.message);
    }
}

/* Carries out one step of the proof. Returns how many bytes it took. */
/* Carries out one step of the proof. Returns how many bytes it took. */
static size_t store_link_take_step(
    struct store_link *link, const struct store_proof_step *step, size_t *out_needed) {
    if (step->outcome == STORE_PROOF_INCOMPLETE) {
        *out_needed = step->needed;
        return 0;
    }
    if (step->outcome == STORE_PROOF_FAILED) {
        end_proof(link, step, "");
        return 0;
    }
    if (step->outcome == STORE_PROOF_ASKED) {
        ask_munge(link, step->presented);
        return step->consumed;
    }
    if (step->outcome == STORE_PROOF_DONE) {
        store_link_become_ready(link);
    } else {
        tcp_stream_send(&link->stream, (struct slice){step->reply, step->reply_length});
    }
    return step->consumed;
}

static void begin_proof(struct store_link *link) {
    struct store_proof_step step = store_proof_begin(&link->proof, link->key);
    link->is_proving = true;
    (void)store_link_take_step(link, &step, NULL);
}

/* What this side and the other want does not fit. */
static const char *misfit(bool wants_token, bool wants_munge, const struct store_key *key) {
    if (wants_token) {
        return "it wants a job token, and none is given here; give all nodes the same one, by "
               "MUSTER_JOB_TOKEN or --token-file";
    }
    if (wants_munge) {
        return key != NULL
                   ? "it wants munge's credentials, and this node has a job token; give all nodes "
                     "the same token, or all of them --auth munge"
                   : "it wants munge's credentials, and this node uses none: munge is not to be "
                     "had here (in a container mount /run/munge), or --auth none is given; give "
                     "all nodes munge, or the same job token, or all of them --auth none";
    }
    return key->kind == STORE_KEY_MUNGE
               ? "it wants no proof by munge, so it cannot prove that it is this job's; give its "
                 "node munge, too, or all nodes the same job token, or where nodes of torchrun "
                 "take part --auth none"
               : "it wants no job token, so it cannot prove that it is this job's; give all nodes "
                 "the same token, or where nodes of torchrun take part --auth none";
}

/* The server repeats the number of the greeting, or says by another that it wants a proof. */
static void store_link_take_greeting(struct store_link *link, uint32_t nonce) {
    const struct store_key *key = link->key;
    bool wants_token = nonce == STORE_PROOF_WANTED;
    bool wants_munge = nonce == STORE_PROOF_WANTED_CREDENTIAL;
    bool has_token = key != NULL && key->kind == STORE_KEY_TOKEN;
    bool has_munge = key != NULL && key->kind == STORE_KEY_MUNGE;
    if (!wants_token && !wants_munge && nonce != STORE_PROOF_OFFERED) {
        store_link_end(
            link, FAILURE_PROTOCOL, "it is no store: it did not repeat the number it was sent");
    } else if (wants_token != has_token || wants_munge != has_munge) {
        store_link_end(link, FAILURE_INVALID, misfit(wants_token, wants_munge, key));
    } else if (key != NULL) {
        begin_proof(link);
    } else {
        store_link_become_ready(link);
    }
}

/* Link. */

/* That are not answered. */
#define SIGNS_MAXIMUM 4

static struct store_link *link_of(struct tcp_stream *stream) {
    return (struct store_link *)(void *)stream;
}

/* Adds the server's name to the failure of an established connection, and says whether its machine
 * still answers. */
static void report_end(struct store_link *link, const struct failure *reason) {
    struct failure failure = *reason;
    char server[TCP_ADDRESS_TEXT_SIZE];
    store_link_drop_question(link);
    tcp_address_describe(&link->address, server);
    if (link->is_ready && tcp_silence_is(reason->system_error)) {
        failure_set(&failure, FAILURE_TIMEOUT, "no answer from %s for %g s (%s)", server,
            duration_seconds(link->silence_timeout), reason->message);
        failure.system_error = reason->system_error;
    } else if (link->is_ready || reason->code == FAILURE_INVALID) {
        (void)failure_wrap(&failure, "the store at %s", server);
    }
    link->owner->ended(link->context, &failure);
}

/* Ends the connection, and tells the owner. */
static void store_link_end(struct store_link *link, enum failure_code code, const char *reason) {
    struct failure failure = {0};
    failure_set(&failure, code, "%s", reason);
    tcp_stream_close(&link->stream);
    report_end(link, &failure);
}

/* As upstream: VALIDATE has no reply, so a PING checks that a store is at the other end. Its number
 * asks whether a proof is wanted. */
static void connected(struct tcp_stream *stream) {
    struct store_link *link = link_of(stream);
    struct store_request ping = {.operation = STORE_PING, .nonce = STORE_PROOF_OFFERED};
    struct bytes greeting = {0};
    if (store_request_encode(&(struct store_request){.operation = STORE_VALIDATE}, &greeting) ==
            FAILURE_NONE &&
        store_request_encode(&ping, &greeting) == FAILURE_NONE) {
        store_link_expect(link, &ping);
        tcp_stream_send(stream, bytes_slice(&greeting));
    }
    bytes_clear(&greeting);
}

/* The server answered the greeting, and both sides have proved themselves. */
static void store_link_become_ready(struct store_link *link) {
    link->is_proving = false;
    link->is_ready = true;
    link->expects_reply = false;
    link->owner->ready(link->context);
}

static void handle_reply(struct store_link *link, const struct store_reply *reply) {
    if (link->is_ready) {
        link->owner->replied(link->context, reply);
    } else {
        store_link_take_greeting(link, reply->nonce);
    }
}

/* Requests that are answered before what is expected. */

static bool has_place_ahead(const struct store_link *link) {
    return link->ahead_count + 2 <=
           STORE_LINK_AHEAD_MAXIMUM; /* one gives way, and the next rests */
}

static void add_ahead(struct store_link *link, enum store_link_ahead kind) {
    link->ahead[link->ahead_count++] = kind;
    link->signs += kind == STORE_LINK_AHEAD_SIGN ? 1 : 0;
}

static void drop_ahead(struct store_link *link) {
    link->signs -= link->ahead[0] == STORE_LINK_AHEAD_SIGN ? 1 : 0;
    memmove(link->ahead, link->ahead + 1, --link->ahead_count * sizeof *link->ahead);
}

/* The server answers the QUEUE_POP that rests before the next request. */
static void give_way(struct store_link *link) {
    if (link->is_resting) {
        link->is_resting = false;
        add_ahead(link, STORE_LINK_AHEAD_ITEM);
    }
}

/* So many bytes have at least the answers ahead: an item is longer than the word for none. */
static size_t bytes_ahead(const struct store_link *link) {
    size_t items = link->ahead_count - (size_t)link->signs;
    return (size_t)link->signs * STORE_SIGN_ANSWER_BYTES + items * STORE_NO_ITEM_BYTES;
}

/* Whatever is more than the answers ahead is more than what is left. */
static void leave_answers(struct store_link *link) {
    size_t left = link->is_all_taken ? bytes_ahead(link) : 0;
    if (left != link->left && !link->stream.is_closed) {
        link->left = left;
        tcp_stream_expect(&link->stream, left + 1);
    }
}

/* The answer to a sign of life. */
static size_t take_answer(struct store_link *link, struct slice input, size_t *out_needed) {
    uint32_t number = 0;
    if (input.length < STORE_SIGN_ANSWER_BYTES) {
        *out_needed = STORE_SIGN_ANSWER_BYTES;
        return 0;
    }
    for (int i = STORE_SIGN_ANSWER_BYTES - 1; i >= 0; i--) {
        number = number << 8 | input.data[i];
    }
    if (number != STORE_SIGN_OF_LIFE) {
        store_link_end(
            link, FAILURE_PROTOCOL, "it is no store: it did not repeat the number it was sent");
        return 0;
    }
    drop_ahead(link);
    return STORE_SIGN_ANSWER_BYTES;
}

/* Returns how many bytes the reply took; 0 when it is not complete, or when it has ended the link.
 */
static size_t decode(struct store_link *link, struct store_reply_decoder *decoder,
    struct slice input, struct store_decoded_reply *out_decoded, size_t *out_needed) {
    enum failure_code code = store_reply_decoder_next(decoder, input, out_decoded);
    if (code == FAILURE_INCOMPLETE) {
        *out_needed = out_decoded->needed;
        return 0;
    }
    if (code != FAILURE_NONE) {
        store_link_end(link, code, out_decoded->reason);
        return 0;
    }
    return out_decoded->consumed;
}

/* The answer to a QUEUE_POP that rests, or has given way. */
static size_t take_item(struct store_link *link, struct slice input, size_t *out_needed) {
    struct store_decoded_reply decoded;
    bool has_given_way = link->ahead_count > 0;
    bool is_wanted = !has_given_way || link->ahead[0] == STORE_LINK_AHEAD_ITEM;
    size_t length = decode(link, &link->items, input, &decoded, out_needed);
    if (length == 0) {
        return 0;
    }
    if (has_given_way) {
        drop_ahead(link);
    } else {
        link->is_resting = false;
    }
    if (is_wanted && (!has_given_way || decoded.reply.pop.length > 0)) {
        link->owner->rested(link->context, &decoded.reply);
    }
    return length;
}

/* Decodes one reply at the front of `input`. Returns how many bytes it took; 0 when it is not
 * complete. */
static size_t take_reply(struct store_link *link, struct slice input, size_t *out_needed) {
    if (link->is_proving) {
        struct store_proof_step step = store_proof_continue(&link->proof, link->key, input);
        return store_link_take_step(link, &step, out_needed);
    }
    if (link->ahead_count > 0) {
        return link->ahead[0] == STORE_LINK_AHEAD_SIGN ? take_answer(link, input, out_needed)
                                                       : take_item(link, input, out_needed);
    }
    if (!link->expects_reply && link->is_resting) {
        return take_item(link, input, out_needed);
    }
    if (!link->expects_reply) {
        store_link_end(link, FAILURE_PROTOCOL, "the server sent a reply that was not asked for");
        return 0;
    }
    struct store_decoded_reply decoded;
    size_t length = decode(link, &link->decoder, input, &decoded, out_needed);
    if (length > 0) {
        handle_reply(link, &decoded.reply);
    }
    return length;
}

static size_t received(struct tcp_stream *stream, struct slice input, size_t *out_needed) {
    struct store_link *link = link_of(stream);
    size_t consumed = 0;
    size_t length = 1;
    while (length > 0 && consumed < input.length && !stream->is_closed) {
        struct slice rest = slice_from(input, consumed);
        length = take_reply(link, rest, out_needed);
        consumed += length;
    }
    link->is_all_taken = consumed == input.length;
    leave_answers(link);
    return consumed;
}

static void drained(struct tcp_stream *stream) {
    struct store_link *link = link_of(stream);
    if (link->is_ready) {
        link->owner->drained(link->context);
    }
}

static void ended(struct tcp_stream *stream, const struct failure *failure) {
    struct store_link *link = link_of(stream);
    report_end(link, failure);
}

static void clear(struct store_link *link) {
    bytes_clear(&link->rested);
    store_reply_decoder_clear(&link->decoder);
    store_reply_decoder_clear(&link->items);
    tcp_stream_pool_clear(&link->pool);
    blocking_pool_free(link->blocking); /* not sooner: the link may end in an answer of theirs */
    free(link);
}

static void released(struct tcp_stream *stream) {
    struct store_link *link = link_of(stream);
    link->is_released = true;
    if (link->is_freed) {
        clear(link);
    }
}

static const struct tcp_stream_owner stream_owner = {
    .connected = connected,
    .received = received,
    .drained = drained,
    .ended = ended,
    .released = released,
};

/* Returns a connecting socket, or -errno. */
static int dial(const struct store_link_settings *settings) {
    const union tcp_address *address = settings->address;
    int fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -errno;
    }
    int on = 1;
    int off = 0; /* almost each message has an answer, which acknowledges it: the handshake, too */
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &off, sizeof off);
    if (settings->is_watched) {
        tcp_silence_watch(fd, settings->silence_timeout);
    } else {
        tcp_silence_limit(fd, settings->silence_timeout);
    }
    socklen_t length =
        address->any.sa_family == AF_INET6 ? sizeof address->ipv6 : sizeof address->ipv4;
    int status = connect(fd, &address->any, length);
    if (status != 0 && errno != EINPROGRESS) {
        int error = errno;
        close(fd);
        return -error;
    }
    return fd;
}

enum failure_code store_link_open(struct event_loop *loop,
    const struct store_link_settings *settings, struct store_link **out_link,
    struct failure *failure) {
    int fd = dial(settings);
    if (fd < 0) {
        return failure_set_system(failure, -fd, "cannot connect");
    }
    struct store_link *link = memory_allocate(sizeof *link);
    tcp_stream_pool_init(&link->pool, &stream_owner, SIZE_MAX / 2, SIZE_MAX / 2);
    store_reply_decoder_init(&link->decoder, settings->limits);
    store_reply_decoder_init(&link->items, settings->limits);
    store_reply_decoder_expect(&link->items, &(struct store_request){.operation = STORE_QUEUE_POP});
    link->owner = settings->owner;
    link->context = settings->context;
    link->address = *settings->address;
    link->silence_timeout = settings->silence_timeout;
    link->key = settings->key;
    link->loop = loop;
    /* The socket may be connected already. The loop reports that at once, so it is treated as
     * connecting. */
    enum failure_code code = tcp_stream_open(&link->stream, loop, &link->pool, fd, true, failure);
    if (code != FAILURE_NONE) {
        close(fd);
        clear(link);
        return code;
    }
    *out_link = link;
    return FAILURE_NONE;
}

void store_link_free(struct store_link *link) {
    if (link == NULL) {
        return;
    }
    tcp_stream_close(&link->stream);
    store_link_drop_question(link);
    link->is_freed = true;
    if (link->is_released) {
        clear(link);
    }
}

bool store_link_is_connected(const struct store_link *link) {
    return !link->stream.is_connecting;
}

void store_link_write_server(const struct store_link *link, struct text *out) {
    char address[INET6_ADDRSTRLEN];
    if (tcp_address_write_numeric(&link->address, address)) {
        text_append(out, address);
    }
}

void store_link_write_address(const struct store_link *link, struct text *out) {
    char address[INET6_ADDRSTRLEN];
    if (link->proof.stage == STORE_PROOF_STAGE_PROVEN &&
        tcp_address_write_host(link->proof.client_address, address)) {
        text_append(out, address);
    }
}

int store_link_descriptor(const struct store_link *link) {
    return link->stream.is_closed ? -1 : link->stream.fd;
}

struct duration store_link_silence(const struct store_link *link) {
    return tcp_silence_measure(link->stream.fd).silent_for;
}

static void end_silent(struct store_link *link, struct duration silent_for) {
    struct failure failure = {0};
    char server[TCP_ADDRESS_TEXT_SIZE];
    tcp_address_describe(&link->address, server);
    failure_set(&failure, FAILURE_TIMEOUT, "no answer from %s for %g s", server,
        duration_seconds(silent_for));
    tcp_stream_close(&link->stream);
    link->owner->ended(link->context, &failure);
}

struct duration store_link_look(
    struct store_link *link, struct duration calm_after, bool *out_is_calm) {
    struct instant now = event_loop_now(link->loop);
    struct duration limit = link->silence_timeout;
    struct connection_hearing hearing = tcp_silence_measure(link->stream.fd);
    *out_is_calm =
        calm_after.nanoseconds > 0 && connection_calm_look(&link->calm, hearing, calm_after, now);
    if (connection_silence_look(&link->silence, hearing.silent_for, limit, now)) {
        end_silent(link, hearing.silent_for);
        return DURATION_FOREVER;
    }
    return connection_silence_pause(&link->silence, hearing.silent_for, limit, now);
}

static void send_bytes(struct store_link *link, struct slice request, bool is_followed) {
    give_way(link);
    if (is_followed) {
        tcp_stream_send_ahead(&link->stream, request);
    } else {
        tcp_stream_send(&link->stream, request);
    }
}

void store_link_sign(struct store_link *link, bool is_followed) {
    const struct store_request sign = {.operation = STORE_PING, .nonce = STORE_SIGN_OF_LIFE};
    struct bytes bytes = {0};
    if (link->signs < SIGNS_MAXIMUM && has_place_ahead(link) &&
        store_request_encode(&sign, &bytes) == FAILURE_NONE) {
        give_way(link);
        add_ahead(link, STORE_LINK_AHEAD_SIGN);
        leave_answers(link);
        send_bytes(link, bytes_slice(&bytes), is_followed); /* may end the link */
    }
    bytes_clear(&bytes);
}

void store_link_collect(struct store_link *link) {
    if (link->ahead_count > 0) {
        tcp_stream_catch_up(&link->stream);
    }
}

bool store_link_send(struct store_link *link, struct slice request, bool is_followed) {
    send_bytes(link, request, is_followed);
    return tcp_stream_is_drained(&link->stream);
}

void store_link_expect(struct store_link *link, const struct store_request *request) {
    link->expects_reply = store_operation_reply_kind(request->operation) != STORE_REPLY_NONE;
    store_reply_decoder_expect(&link->decoder, request);
}

void store_link_expect_nothing(struct store_link *link) {
    link->expects_reply = false;
}

bool store_link_may_rest(const struct store_link *link) {
    return has_place_ahead(link);
}

bool store_link_is_resting(const struct store_link *link) {
    return link->is_resting;
}

struct slice store_link_rested(const struct store_link *link) {
    return bytes_slice(&link->rested);
}

void store_link_prepare_rest(struct store_link *link, struct slice queue_pop) {
    if (slice_equals(bytes_slice(&link->rested), queue_pop)) {
        return;
    }
    give_way(link);
    for (size_t i = 0; i < link->ahead_count; i++) {
        if (link->ahead[i] == STORE_LINK_AHEAD_ITEM) {
            link->ahead[i] = STORE_LINK_AHEAD_UNWANTED;
        }
    }
    link->rested.length = 0;
    (void)!bytes_append(&link->rested, queue_pop.data, queue_pop.length); /* has no ceiling */
}

void store_link_rest(struct store_link *link, struct slice queue_pop) {
    link->is_resting = true;
    leave_answers(link);
    tcp_stream_send(&link->stream, queue_pop);
}
