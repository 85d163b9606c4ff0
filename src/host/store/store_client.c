/* SPDX-License-Identifier: BSD-3-Clause */
/* A client first connects (store_client_dialling) until a link is ready; then it carries out one
 * call after the other. One timer serves both. */
#include "host/store/store_client.h"

#include <stdlib.h>

#include "base/memory.h"
#include "host/loop/random_seed.h"
#include "host/network/tcp_silence.h"
#include "host/store/store_client_dialling.h"
#include "host/store/store_client_state.h"

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

/* The connection has ended, or no attempt will follow. */
void store_client_give_up(struct store_client *client, const struct failure *failure) {
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

const struct store_link_owner store_client_link_owner = {
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
