/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/store/store_client.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/memory.h"
#include "host/loop/clock.h"
#include "host/network/network_address.h"
#include "host/network/tcp_stream.h"
#include "host/store/store_link.h"
#include "wire/store/store_codec.h"

/* The addresses of a store to connect to. Its names are resolved, their addresses are handed out
 * one after the other, and then the names are resolved again, because they may become known or
 * change meanwhile. The result of each attempt is kept for the error message. The client
 * connects and handles deadlines and pauses. */

struct store_address {
    union tcp_address address;
    struct failure failure; /* of the last attempt; FAILURE_NONE: not tried yet */
};

struct store_addresses {
    char *host;
    int port;
    struct store_address *items;
    size_t count;
    size_t next;
    uint64_t attempts;
    struct failure unresolved; /* FAILURE_NONE: one of its names is known */
};

enum store_client_phase {
    STORE_CLIENT_PAUSING,    /* waits for the next attempt */
    STORE_CLIENT_CONNECTING, /* the link exists, its handshake is not answered yet */
    STORE_CLIENT_READY,
    STORE_CLIENT_OVER, /* `end` holds the reason */
};

struct store_client {
    struct event_loop *loop;
    struct store_client_settings settings;
    enum store_client_phase phase;
    struct store_link *link;

    struct store_addresses addresses;
    struct backoff backoff;
    struct instant connect_deadline;
    uint64_t vain_attempts; /* in a row that were refused, or had no way to go */
    bool is_refused;        /* since the time below nothing but refusals has come */
    struct instant refused_since;
    struct failure end; /* why there is no connection */

    struct store_call_queue queue; /* calls that have not begun */
    struct store_call *active;     /* the call that the link works on */
    struct store_call *resting;    /* the QUEUE_POP that is at the server while nothing else is */
    struct event_timer *timer;
    struct instant next_attempt; /* PAUSING: when the next attempt begins; CONNECTING: when the
                                    attempt is given up */
    struct instant attempt_began;
    int busy; /* callbacks under way; the client must not be freed before they end */
    bool is_freed;
};

static void store_client_give_up(struct store_client *client, const struct failure *failure);
static const struct store_link_owner store_client_link_owner;

/* Appending to a buffer without a ceiling cannot fail. */
static void encode(struct bytes *out, const struct store_request *request) {
    (void)!store_request_encode(request, out);
}

/* Returns the request's key with a '/' in front. It is stored in `storage`, which must have room
 * for all keys, because it must not move. */
static struct slice prefixed(struct slice key, struct bytes *storage) {
    size_t start = storage->length;
    (void)!bytes_append(storage, "/", 1);
    (void)!bytes_append(storage, key.data, key.length);
    return (struct slice){storage->data + start, key.length + 1};
}

static size_t key_bytes(const struct store_request *request) {
    size_t length = request->key.length + 1;
    for (size_t i = 0; i < request->count; i++) {
        length += request->keys[i].length + 1;
    }
    return length;
}

static void encode_parts(struct store_call *call, const struct store_request *request) {
    encode(&call->bytes, request);
    if (call->waits_first) {
        bool is_list = request->operation == STORE_MULTI_GET;
        encode(&call->wait_bytes, &(struct store_request){.operation = STORE_WAIT,
                                      .keys = is_list ? request->keys : &request->key,
                                      .count = is_list ? request->count : 1});
    }
}

/* Puts a '/' in front of everything that may be a key; operations without keys ignore it. */
static void encode_prefixed(struct store_call *call, const struct store_request *request) {
    struct bytes storage = {0};
    (void)!bytes_reserve(&storage, key_bytes(request));
    struct slice *keys = memory_allocate((request->count + 1) * sizeof *keys);
    for (size_t i = 0; i < request->count; i++) {
        keys[i] = prefixed(request->keys[i], &storage);
    }
    struct store_request raw = *request;
    raw.key = prefixed(request->key, &storage);
    raw.keys = keys;
    encode_parts(call, &raw);
    free(keys);
    bytes_clear(&storage);
}

struct store_call *store_call_new(const struct store_client_call *call, struct instant now) {
    struct store_call *made = memory_allocate(sizeof *made);
    made->request =
        (struct store_request){.operation = call->request.operation, .count = call->request.count};
    made->waits_first = call->waits_first;
    made->rests = call->rests;
    made->deadline = instant_after(now, call->rests ? DURATION_FOREVER : call->timeout);
    made->done = call->done;
    made->context = call->context;
    if (call->is_raw) {
        encode_parts(made, &call->request);
    } else {
        encode_prefixed(made, &call->request);
    }
    return made;
}

static void store_call_free(struct store_call *call) {
    bytes_clear(&call->wait_bytes);
    bytes_clear(&call->bytes);
    free(call);
}

/* Whether the request is in a stage that the server may answer late and that can be cancelled. */
static bool store_call_is_waiting(const struct store_call *call) {
    if (call->stage == STORE_CALL_WAITING_FIRST) {
        return true;
    }
    return call->stage == STORE_CALL_SENT &&
           (call->request.operation == STORE_WAIT || call->request.operation == STORE_BARRIER);
}

void store_call_finish(struct store_call *call_taken, const struct store_client_result *result) {
    if (call_taken->done != NULL) {
        call_taken->done(call_taken->context, result);
    }
    store_call_free(call_taken);
}

void store_call_queue_push(struct store_call_queue *queue, struct store_call *call_taken) {
    call_taken->next = NULL;
    if (queue->last != NULL) {
        queue->last->next = call_taken;
    } else {
        queue->first = call_taken;
    }
    queue->last = call_taken;
}

static struct store_call *remove_after(
    struct store_call_queue *queue, struct store_call *previous) {
    struct store_call *taken = previous == NULL ? queue->first : previous->next;
    if (previous == NULL) {
        queue->first = taken->next;
    } else {
        previous->next = taken->next;
    }
    if (queue->last == taken) {
        queue->last = previous;
    }
    return taken;
}

struct store_call *store_call_queue_pop(struct store_call_queue *queue) {
    return queue->first == NULL ? NULL : remove_after(queue, NULL);
}

struct store_call *store_call_queue_pop_expired(
    struct store_call_queue *queue, struct instant now) {
    struct store_call *previous = NULL;
    for (struct store_call *each = queue->first; each != NULL; each = each->next) {
        if (!instant_is_before(now, each->deadline)) {
            return remove_after(queue, previous);
        }
        previous = each;
    }
    return NULL;
}

/* Removes and returns the first call that rests with these bytes, or NULL. */
static struct store_call *store_call_queue_pop_resting(
    struct store_call_queue *queue, struct slice queue_pop) {
    struct store_call *previous = NULL;
    for (struct store_call *each = queue->first; each != NULL; each = each->next) {
        if (each->rests && slice_equals(bytes_slice(&each->bytes), queue_pop)) {
            return remove_after(queue, previous);
        }
        previous = each;
    }
    return NULL;
}

struct instant store_call_queue_deadline(const struct store_call_queue *queue) {
    struct instant earliest = {INT64_MAX};
    for (const struct store_call *each = queue->first; each != NULL; each = each->next) {
        if (instant_is_before(each->deadline, earliest)) {
            earliest = each->deadline;
        }
    }
    return earliest;
}

/* Addresses. */

/* The maximum number of addresses of one name that are tried. */
#define STORE_ADDRESSES_MOST 16

/* Copies the host: a name, an IPv4 or an IPv6 address without brackets; or several of them, parted
 * by blanks, the best first. */
static void store_addresses_init(struct store_addresses *addresses, const char *host, int port) {
    *addresses = (struct store_addresses){.host = memory_duplicate_string(host), .port = port};
}

static void store_addresses_clear(struct store_addresses *addresses) {
    free(addresses->host);
    free(addresses->items);
    addresses->host = NULL;
    addresses->items = NULL;
    addresses->count = 0;
}

/* Returns the result of an earlier attempt with this address, even if the name was resolved again
 * since. */
static struct failure failure_of(
    const struct store_addresses *addresses, const union tcp_address *address) {
    for (size_t i = 0; i < addresses->count; i++) {
        if (tcp_address_is_same_host(&addresses->items[i].address, address)) {
            return addresses->items[i].failure;
        }
    }
    return (struct failure){0};
}

/* Adds the addresses of one name that are not there yet. A name that is not known counts only where
 * none is. */
static size_t resolve_name(struct store_addresses *addresses, const char *name,
    union tcp_address found[static STORE_ADDRESSES_MOST], size_t count) {
    union tcp_address more[STORE_ADDRESSES_MOST] = {0};
    struct failure failure = {0};
    size_t more_count = 0;
    if (name_lookup_resolve(name, addresses->port, more, STORE_ADDRESSES_MOST, &more_count,
            &failure) != FAILURE_NONE) {
        addresses->unresolved = failure;
        return count;
    }
    for (size_t i = 0; i < more_count && count < STORE_ADDRESSES_MOST; i++) {
        size_t same = 0;
        while (same < count && !tcp_address_is_same_host(&found[same], &more[i])) {
            same++;
        }
        found[same] = more[i];
        count += same == count ? 1 : 0;
    }
    return count;
}

static size_t resolve_names(
    struct store_addresses *addresses, union tcp_address found[static STORE_ADDRESSES_MOST]) {
    char *names = memory_duplicate_string(addresses->host);
    char *rest = NULL;
    size_t count = 0;
    for (char *name = strtok_r(names, " ", &rest); name != NULL;
         name = strtok_r(NULL, " ", &rest)) {
        count = resolve_name(addresses, name, found, count);
    }
    free(names);
    return count;
}

static void resolve(struct store_addresses *addresses) {
    union tcp_address found[STORE_ADDRESSES_MOST] = {0};
    struct failure failures[STORE_ADDRESSES_MOST];
    addresses->next = 0;
    addresses->unresolved = (struct failure){0};
    size_t count = resolve_names(addresses, found);
    if (count > 0) {
        addresses->unresolved = (struct failure){0};
    }
    for (size_t i = 0; i < count; i++) {
        failures[i] = failure_of(addresses, &found[i]);
    }
    addresses->items = memory_reallocate(addresses->items, count * sizeof *addresses->items);
    for (size_t i = 0; i < count; i++) {
        addresses->items[i] = (struct store_address){found[i], failures[i]};
    }
    addresses->count = count;
}

/* Whether there is another address before the name is resolved again. */
static bool store_addresses_has_more(const struct store_addresses *addresses) {
    return addresses->next < addresses->count;
}

/* The address to try next. The name is resolved before the first address and after the last, which
 * blocks. NULL when the name is not known now. The pointer is valid until the next call. */
static const union tcp_address *store_addresses_next(struct store_addresses *addresses) {
    addresses->attempts++;
    if (!store_addresses_has_more(addresses)) {
        resolve(addresses);
    }
    if (addresses->count == 0) {
        return NULL;
    }
    return &addresses->items[addresses->next++].address;
}

/* Records the result of the attempt with the address handed out last. */
static void store_addresses_note(struct store_addresses *addresses, const struct failure *failure) {
    if (addresses->next > 0) {
        addresses->items[addresses->next - 1].failure = *failure;
    }
}

/* The same for an attempt that was cut off. It does not replace the result of an earlier attempt
 * with the same address. */
static void store_addresses_note_unfinished(
    struct store_addresses *addresses, const struct failure *failure) {
    if (addresses->next > 0 && addresses->items[addresses->next - 1].failure.code == FAILURE_NONE) {
        store_addresses_note(addresses, failure);
    }
}

static void describe_address(const struct store_address *item, struct text *text) {
    char address[TCP_ADDRESS_TEXT_SIZE];
    tcp_address_describe(&item->address, address);
    text_append_format(text, "%s: ", address);
    if (item->failure.code == FAILURE_NONE) {
        text_append(text, "no attempt was finished");
        return;
    }
    text_append(text, item->failure.message);
    if (item->failure.system_error != 0) {
        text_append_format(text, " (errno %d)", item->failure.system_error);
    }
}

/* Appends the attempts: "after 3 attempts: 192.0.2.1:29500: Connection refused (errno 111)". */
static void store_addresses_describe(const struct store_addresses *addresses, struct text *text) {
    text_append_format(text, "after %" PRIu64 " attempt%s: ", addresses->attempts,
        addresses->attempts == 1 ? "" : "s");
    if (addresses->unresolved.code != FAILURE_NONE) {
        text_append(text, addresses->unresolved.message);
    } else if (addresses->count == 0) {
        text_append(text, "its name was never looked up");
    }
    for (size_t i = 0; i < addresses->count; i++) {
        text_append(text, i > 0 ? "; " : "");
        describe_address(&addresses->items[i], text);
    }
}

/* A store_client, as its parts share it: store_client has the calls, store_client_dialling
 * connects. No other module may read or write it. */

/* The part of a store_client that connects: addresses, attempts, pauses, and when it gives up. */

/* The time for one attempt to connect, handshake included. Then the next address is tried, or the
 * same again. Where there are several, one may lead nowhere: the others do not wait long until it
 * is connected, but longer each time all were tried. */
#define ATTEMPT_MILLISECONDS 10000
#define FIRST_ATTEMPTS 3
static const int first_attempts_milliseconds[FIRST_ATTEMPTS] = {250, 1000, 4000};

/* Another machine may have one of the addresses, too, and refuse. So all have to. */
static bool is_refused_everywhere(const struct store_client *client) {
    return client->is_refused && client->vain_attempts >= client->addresses.count;
}

/* When this client will have been refused for long enough. */
static struct instant store_client_refusals_end(const struct store_client *client) {
    struct duration patience = client->settings.refusal_patience;
    bool is_accepted = client->link != NULL && store_link_is_connected(client->link);
    bool is_limited = is_refused_everywhere(client) && !is_accepted && patience.nanoseconds > 0;
    return instant_after(client->refused_since, is_limited ? patience : DURATION_FOREVER);
}

static void give_up_connecting(struct store_client *client, bool is_refused) {
    struct failure failure = {0};
    struct text tried = {0};
    struct duration patience =
        is_refused ? client->settings.refusal_patience : client->settings.connect_timeout;
    store_addresses_describe(&client->addresses, &tried);
    failure_set(&failure, FAILURE_TIMEOUT, "no store at %s port %d within %g s, %s",
        client->addresses.host, client->addresses.port, duration_seconds_told(patience),
        text_string(&tried));
    text_clear(&tried);
    failure.system_error = is_refused ? ECONNREFUSED : 0;
    store_client_give_up(client, &failure);
}

/* An address of a network to which this machine has no way says nothing about the server: another
 * address of it may refuse connections. A machine that is silent may be there. */
static bool has_no_way(int system_error) {
    return system_error == ENETUNREACH || system_error == ENETDOWN;
}

/* Notes how an attempt has ended. */
static void note_refusal(struct store_client *client, const struct failure *failure) {
    bool is_refusal = failure->system_error == ECONNREFUSED;
    bool is_nobody = is_refusal || has_no_way(failure->system_error);
    if (is_refusal && !client->is_refused) {
        client->refused_since = event_loop_now(client->loop);
    }
    client->vain_attempts = is_nobody ? client->vain_attempts + 1 : 0;
    client->is_refused = is_refusal || (client->is_refused && is_nobody);
}

/* Tries the next address at once. After the last address there is a pause. */
static void store_client_retry(struct store_client *client, const struct failure *failure) {
    note_refusal(client, failure);
    store_addresses_note(&client->addresses, failure);
    store_link_free(client->link);
    client->link = NULL;
    client->phase = STORE_CLIENT_PAUSING;
    struct duration delay = store_addresses_has_more(&client->addresses)
                                ? (struct duration){0}
                                : backoff_next(&client->backoff);
    client->next_attempt = instant_after(event_loop_now(client->loop), delay);
}

static struct duration attempt_time(const struct store_addresses *addresses) {
    uint64_t earlier = addresses->count > 0 ? (addresses->attempts - 1) / addresses->count : 0;
    bool is_first = addresses->count > 1 && earlier < FIRST_ATTEMPTS;
    return duration_from_milliseconds(
        is_first ? first_attempts_milliseconds[earlier] : ATTEMPT_MILLISECONDS);
}

static void begin_attempt(struct store_client *client) {
    struct failure failure = {0};
    struct store_link_settings settings = {
        .address = store_addresses_next(&client->addresses),
        .limits = &client->settings.limits,
        .key = client->settings.key,
        .silence_timeout = client->settings.silence_timeout,
        .is_watched = client->settings.is_watched,
        .owner = &store_client_link_owner,
        .context = client,
    };
    if (settings.address == NULL ||
        store_link_open(client->loop, &settings, &client->link, &failure) != FAILURE_NONE) {
        store_client_retry(client, &failure);
        return;
    }
    client->phase = STORE_CLIENT_CONNECTING;
    client->attempt_began = event_loop_now(client->loop);
    client->next_attempt = instant_after(client->attempt_began, attempt_time(&client->addresses));
}

static void give_up_attempt(struct store_client *client) {
    struct failure failure;
    failure_set(&failure, FAILURE_TIMEOUT, "%s",
        store_link_is_connected(client->link) ? "it accepts connections, but does not answer"
                                              : "it does not answer");
    store_client_retry(client, &failure);
}

/* The time for the current attempt is up. A server that is there may have much to do. */
static void end_attempt(struct store_client *client, struct instant now) {
    struct instant end =
        instant_after(client->attempt_began, duration_from_milliseconds(ATTEMPT_MILLISECONDS));
    if (store_link_is_connected(client->link) && instant_is_before(now, end)) {
        client->next_attempt = end;
    } else {
        give_up_attempt(client);
    }
}

/* The time for all attempts is up, but maybe not for the current one. If an earlier attempt failed,
 * its error says more than that the current one has no answer yet. */
static void cut_off_attempt(struct store_client *client) {
    struct failure failure;
    if (store_link_is_connected(client->link)) {
        give_up_attempt(client);
        return;
    }
    failure_set(&failure, FAILURE_TIMEOUT, "it does not answer");
    store_addresses_note_unfinished(&client->addresses, &failure);
}

/* Does what is due of an attempt that pauses or is under way. */
static void store_client_dial_due(struct store_client *client, struct instant now) {
    bool is_refused = !instant_is_before(now, store_client_refusals_end(client));
    bool is_over = is_refused || !instant_is_before(now, client->connect_deadline);
    bool is_due = !instant_is_before(now, client->next_attempt);
    if (is_over && client->phase == STORE_CLIENT_CONNECTING) {
        cut_off_attempt(client);
    } else if (is_due && client->phase == STORE_CLIENT_CONNECTING) {
        end_attempt(client, now);
    } else if (is_due && !is_over) {
        begin_attempt(client);
    }
    if (is_over) {
        give_up_connecting(client, is_refused);
    }
}

/* Client. */

/* The time for a server to confirm that a wait is cancelled. */
#define CANCEL_MILLISECONDS 5000

/* Sets the timer to whatever is due first. */
static void arm(struct store_client *client) {
    struct instant due = store_call_queue_deadline(&client->queue);
    bool is_dialling =
        client->phase == STORE_CLIENT_PAUSING || client->phase == STORE_CLIENT_CONNECTING;
    if (!is_dialling && client->active == NULL && client->queue.first != NULL) {
        due = event_loop_now(client->loop);
    }
    if (client->active != NULL) {
        due = instant_earlier(due, client->active->deadline);
    }
    if (is_dialling) {
        due = instant_earlier(due, instant_earlier(client->next_attempt, client->connect_deadline));
        due = instant_earlier(due, store_client_refusals_end(client));
    }
    event_timer_set(client->timer, due);
}

/* Lets callbacks free the client while its own code is still running. */
static void enter(struct store_client *client) {
    client->busy++;
}

static void leave(struct store_client *client) {
    client->busy--;
    if (client->is_freed && client->busy == 0) {
        store_addresses_clear(&client->addresses);
        free(client);
    } else if (!client->is_freed) {
        arm(client);
    }
}

static void finish_with_failure(struct store_client *client, struct store_call *call_taken,
    enum failure_code code, const char *message) {
    store_call_finish(call_taken, &(struct store_client_result){.code = code,
                                      .is_over = client->phase == STORE_CLIENT_OVER,
                                      .message = message,
                                      .system_error = client->end.system_error});
}

static void finish_active(struct store_client *client, const struct store_client_result *result) {
    struct store_call *call = client->active;
    client->active = NULL;
    if (client->link != NULL) {
        store_link_expect_nothing(client->link);
    }
    store_call_finish(call, result);
}

static void finish_resting(struct store_client *client, const struct store_client_result *result) {
    struct store_call *call = client->resting;
    client->resting = NULL;
    if (call != NULL) {
        store_call_finish(call, result);
    }
}

/* Fails the calls that are pending now. Calls that the callbacks add fail in the next turn of the
 * loop. */
static void fail_pending(struct store_client *client, enum failure_code code, const char *message) {
    size_t count = 0;
    for (const struct store_call *each = client->queue.first; each != NULL; each = each->next) {
        count++;
    }
    const struct store_client_result result = {.code = code,
        .is_over = true,
        .message = message,
        .system_error = client->end.system_error};
    if (client->active != NULL) {
        finish_active(client, &result);
    }
    finish_resting(client, &result);
    /* If a callback frees the client, that call fails the rest. */
    for (; count > 0 && client->queue.first != NULL; count--) {
        finish_with_failure(client, store_call_queue_pop(&client->queue), code, message);
    }
}

/* The connection has ended, or no attempt will follow: every call fails, and the user is told. */
/* The connection has ended, or no attempt will follow. */
static void store_client_give_up(struct store_client *client, const struct failure *failure) {
    bool was_ready = client->phase == STORE_CLIENT_READY;
    client->phase = STORE_CLIENT_OVER;
    client->end = *failure;
    store_link_free(client->link);
    client->link = NULL;
    fail_pending(client, client->end.code, client->end.message);
    void (*tell)(void *context, const struct failure *failure) =
        was_ready ? client->settings.lost : client->settings.connected;
    if (!client->is_freed && tell != NULL) {
        tell(client->settings.context, &client->end);
    }
}

static void finish_without_reply(struct store_client *client) {
    struct store_reply none = {.kind = STORE_REPLY_NONE};
    finish_active(client, &(struct store_client_result){.reply = &none});
}

/* Whether the QUEUE_POP that rests can be sent behind what was sent: at the server a wait is
 * replaced by the next one. */
static bool is_rest_due(const struct store_client *client) {
    const struct store_call *active = client->active;
    return client->resting != NULL && client->queue.first == NULL &&
           store_link_may_rest(client->link) &&
           (active == NULL || (active->stage == STORE_CALL_SENT && !store_call_is_waiting(active)));
}

static void rest(struct store_client *client) {
    if (!client->is_freed && client->phase == STORE_CLIENT_READY && is_rest_due(client) &&
        !store_link_is_resting(client->link)) {
        store_link_rest(client->link, bytes_slice(&client->resting->bytes));
    }
}

/* Sends the next stage of the active call. A call without a reply is done when all of it is
 * sent. */
static void send_active(struct store_client *client) {
    struct store_call *call = client->active;
    struct store_request expected = call->request;
    struct slice bytes = bytes_slice(&call->bytes);
    if (call->waits_first && call->stage == STORE_CALL_QUEUED) {
        call->stage = STORE_CALL_WAITING_FIRST;
        expected = (struct store_request){.operation = STORE_WAIT};
        bytes = bytes_slice(&call->wait_bytes);
    } else {
        call->stage = STORE_CALL_SENT;
    }
    bool has_reply = store_operation_reply_kind(expected.operation) != STORE_REPLY_NONE;
    store_link_expect(client->link, &expected);
    bool is_followed = (!has_reply && client->queue.first != NULL) || is_rest_due(client);
    bool is_drained =
        store_link_send(client->link, bytes, is_followed); /* may end the link and the call */
    if (client->active != NULL && is_drained && !has_reply) {
        finish_without_reply(client);
    }
}

static void take_place_of_resting(struct store_client *client, struct store_call *call_taken) {
    struct store_call *before = client->resting;
    client->resting = call_taken;
    store_link_prepare_rest(client->link, bytes_slice(&call_taken->bytes));
    if (before != NULL) {
        finish_with_failure(client, before, FAILURE_CANCELLED, "another one rests");
    }
}

static void begin(struct store_client *client, struct store_call *call_taken) {
    if (call_taken->rests) {
        take_place_of_resting(client, call_taken);
    } else {
        client->active = call_taken;
        send_active(client);
    }
}

/* Begins calls until one must wait for its reply. */
static void pump(struct store_client *client) {
    while (!client->is_freed && client->phase == STORE_CLIENT_READY && client->active == NULL &&
           client->queue.first != NULL) {
        begin(client, store_call_queue_pop(&client->queue));
    }
    rest(client);
    if (!client->is_freed && client->phase == STORE_CLIENT_OVER) {
        fail_pending(client, client->end.code, client->end.message);
    }
}

static void link_ready(void *context) {
    struct store_client *client = context;
    enter(client);
    client->phase = STORE_CLIENT_READY;
    if (client->settings.connected != NULL) {
        client->settings.connected(client->settings.context, NULL);
    }
    pump(client);
    leave(client);
}

/* The answer to a cancelled wait: possibly the wait's own answer first, then the confirmation. */
static void take_cancel_reply(struct store_client *client, const struct store_reply *reply) {
    struct store_call *call = client->active;
    if (reply->byte == STORE_STOP_WAITING) {
        call->is_released = true;
        return;
    }
    if (!call->is_released) {
        finish_active(
            client, &(struct store_client_result){.code = FAILURE_TIMEOUT, .message = "timed out"});
    } else if (call->cancelled_stage == STORE_CALL_WAITING_FIRST) {
        send_active(client);
    } else {
        struct store_reply released = {.kind = STORE_REPLY_BYTE, .byte = STORE_STOP_WAITING};
        finish_active(client, &(struct store_client_result){.reply = &released});
    }
}

static void end_by_protocol_error(struct store_client *client, const char *reason) {
    struct failure failure = {0};
    failure_set(&failure, FAILURE_PROTOCOL, "%s", reason);
    store_client_give_up(client, &failure);
}

static void link_replied(void *context, const struct store_reply *reply) {
    struct store_client *client = context;
    struct store_call *call = client->active;
    enter(client);
    if (call->stage == STORE_CALL_CANCELLING) {
        take_cancel_reply(client, reply);
    } else if (store_call_is_waiting(call) && reply->byte != STORE_STOP_WAITING) {
        end_by_protocol_error(client, "the server cancelled a wait on its own");
    } else if (call->stage == STORE_CALL_WAITING_FIRST) {
        send_active(client);
    } else {
        finish_active(client, &(struct store_client_result){.reply = reply});
    }
    pump(client);
    leave(client);
}

static void link_rested(void *context, const struct store_reply *reply) {
    struct store_client *client = context;
    enter(client);
    if (client->resting == NULL) { /* a QUEUE_POP was sent ahead, and the next call has not begun */
        client->resting =
            store_call_queue_pop_resting(&client->queue, store_link_rested(client->link));
    }
    finish_resting(client, &(struct store_client_result){.reply = reply});
    pump(client);
    leave(client);
}

static void link_drained(void *context) {
    struct store_client *client = context;
    enter(client);
    struct store_call *call = client->active;
    if (call != NULL && call->stage == STORE_CALL_SENT &&
        store_operation_reply_kind(call->request.operation) == STORE_REPLY_NONE) {
        finish_without_reply(client);
    }
    pump(client);
    leave(client);
}

static void link_ended(void *context, const struct failure *failure) {
    struct store_client *client = context;
    enter(client);
    if (client->phase == STORE_CLIENT_READY || failure->code == FAILURE_INVALID) {
        store_client_give_up(client, failure);
    } else {
        store_client_retry(client, failure);
    }
    leave(client);
}

/* What a link of the client calls. */
static const struct store_link_owner store_client_link_owner = {
    .ready = link_ready,
    .replied = link_replied,
    .rested = link_rested,
    .drained = link_drained,
    .ended = link_ended,
};

static void active_due(struct store_client *client) {
    struct store_call *call = client->active;
    if (store_call_is_waiting(call)) {
        struct store_request cancel = {.operation = STORE_CANCEL_WAIT};
        uint8_t operation = STORE_CANCEL_WAIT;
        call->cancelled_stage = call->stage;
        call->stage = STORE_CALL_CANCELLING;
        call->deadline = instant_after(
            event_loop_now(client->loop), duration_from_milliseconds(CANCEL_MILLISECONDS));
        store_link_expect(client->link, &cancel);
        (void)store_link_send(client->link, (struct slice){&operation, 1}, false);
        return;
    }
    struct failure failure = {0};
    failure_set(&failure, FAILURE_TIMEOUT, "the store did not answer %s in time",
        store_operation_name(call->request.operation));
    finish_active(
        client, &(struct store_client_result){
                    .code = FAILURE_TIMEOUT, .is_over = true, .message = failure.message});
    if (!client->is_freed) {
        store_client_give_up(client, &failure);
    }
}

static bool is_ready(const struct store_client *client) {
    return client->phase == STORE_CLIENT_READY && !client->is_freed;
}

struct duration store_client_silence(const struct store_client *client) {
    return is_ready(client) ? store_link_silence(client->link) : (struct duration){0};
}

int store_client_descriptor(const struct store_client *client) {
    return is_ready(client) ? store_link_descriptor(client->link) : -1;
}

struct duration store_client_look(struct store_client *client) {
    struct duration pause = DURATION_FOREVER;
    if (!is_ready(client)) {
        return pause;
    }
    enter(client);
    store_link_collect(client->link);
    if (is_ready(client)) {
        bool is_calm = false;
        pause = store_link_look(client->link, client->settings.calm_after, &is_calm);
        if (is_ready(client) && client->active == NULL && client->queue.first == NULL && !is_calm) {
            store_link_sign(client->link, is_rest_due(client));
            rest(client);
        }
    }
    pause = is_ready(client) ? pause : DURATION_FOREVER;
    leave(client);
    return pause;
}

static void timer_fired(void *context) {
    struct store_client *client = context;
    enter(client);
    struct instant now = event_loop_now(client->loop);
    if (client->phase == STORE_CLIENT_PAUSING || client->phase == STORE_CLIENT_CONNECTING) {
        store_client_dial_due(client, now);
    }
    pump(client);
    if (!client->is_freed && client->active != NULL &&
        !instant_is_before(now, client->active->deadline)) {
        active_due(client);
    }
    struct store_call *expired = NULL;
    while (!client->is_freed &&
           (expired = store_call_queue_pop_expired(&client->queue, now)) != NULL) {
        finish_with_failure(client, expired, FAILURE_TIMEOUT,
            "the store did not answer in time what was asked before");
    }
    leave(client);
}

struct store_client *store_client_new(
    struct event_loop *loop, const struct store_client_settings *settings) {
    struct store_client *client = memory_allocate(sizeof *client);
    client->loop = loop;
    client->settings = *settings;
    if (client->settings.limits.blob_bytes == 0) {
        client->settings.limits = STORE_REPLY_LIMITS_DEFAULT;
    }
    if (client->settings.silence_timeout.nanoseconds <= 0) {
        client->settings.silence_timeout = TCP_SILENCE_DEFAULT;
    }
    store_addresses_init(&client->addresses, settings->host, settings->port);
    client->settings.host = client->addresses.host;
    backoff_init_within(&client->backoff, random_seed(), settings->refusal_patience);
    client->timer = event_timer_new(loop, timer_fired, client);
    client->next_attempt = instant_after(event_loop_now(loop), settings->pause);
    client->connect_deadline = instant_after(event_loop_now(loop), settings->connect_timeout);
    arm(client);
    return client;
}

void store_client_write_server(const struct store_client *client, struct text *out) {
    if (is_ready(client)) {
        store_link_write_server(client->link, out);
    }
}

void store_client_write_address(const struct store_client *client, struct text *out) {
    if (is_ready(client)) {
        store_link_write_address(client->link, out);
    }
}

void store_client_write_obstacle(const struct store_client *client, struct text *out) {
    const struct store_addresses *addresses = &client->addresses;
    bool is_dialling =
        client->phase == STORE_CLIENT_PAUSING || client->phase == STORE_CLIENT_CONNECTING;
    if (is_dialling && addresses->attempts > 0) {
        text_append_format(out, "no store at %s port %d, ", addresses->host, addresses->port);
        store_addresses_describe(addresses, out);
        if (client->link != NULL && store_link_is_connected(client->link)) {
            text_append(out, "; it accepts a connection now, but has not answered");
        }
    }
}

void store_client_free(struct store_client *client) {
    if (client == NULL || client->is_freed) {
        return;
    }
    enter(client);
    client->is_freed = true;
    client->phase = STORE_CLIENT_OVER;
    store_link_free(client->link);
    client->link = NULL;
    event_timer_free(client->timer);
    fail_pending(client, FAILURE_CANCELLED, "given up");
    leave(client);
}

void store_client_send(struct store_client *client, const struct store_client_call *call) {
    struct instant now = event_loop_now(client->loop);
    store_call_queue_push(&client->queue, store_call_new(call, now));
    arm(client); /* it is sent in the next turn of the loop, never from in here */
}
