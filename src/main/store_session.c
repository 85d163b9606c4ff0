/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/store_session.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "host/event_loop.h"
#include "host/store_client.h"

struct store_session {
    const char *program;
    struct duration timeout;
    struct event_loop *loop;
    struct event_timer *timer;
    struct store_client *client;
};

static void stop_loop(void *context) {
    event_loop_stop(context);
}

struct store_session *store_session_new(
    const char *program, const char *host, int port, struct duration timeout) {
    struct store_session *session = memory_allocate(sizeof *session);
    session->program = program;
    session->timeout = timeout;
    struct failure failure = {0};
    if (event_loop_new(&session->loop, &failure) != FAILURE_NONE) {
        fprintf(stderr, "%s: error: %s\n", program, failure.message);
        free(session);
        return NULL;
    }
    session->timer = event_timer_new(session->loop, stop_loop, session->loop);
    session->client = store_client_new(session->loop,
        &(struct store_client_settings){.host = host, .port = port, .connect_timeout = timeout});
    return session;
}

void store_session_free(struct store_session *session) {
    if (session == NULL) {
        return;
    }
    store_client_free(session->client);
    event_timer_free(session->timer);
    event_loop_free(session->loop);
    free(session);
}

/* One question on its way. */
struct exchange {
    struct store_session *session;
    const struct store_session_question *question;
    bool is_answered;
};

static void answered(void *context, const struct store_client_result *result) {
    struct exchange *exchange = context;
    struct store_session *session = exchange->session;
    event_loop_stop(session->loop);
    if (result->code != FAILURE_NONE) {
        fprintf(stderr, "%s: error: %s: %s\n", session->program,
            store_operation_name(exchange->question->request.operation), result->message);
        return;
    }
    exchange->is_answered = true;
    if (exchange->question->take != NULL) {
        exchange->question->take(exchange->question->context, result->reply);
    }
}

static bool exchange(struct store_session *session, const struct store_session_question *question) {
    struct exchange exchange = {.session = session, .question = question};
    store_client_send(session->client,
        &(struct store_client_call){
            .request = question->request,
            .is_raw = question->is_raw,
            .waits_first = question->waits_first,
            .timeout = question->has_no_time_limit ? DURATION_FOREVER : session->timeout,
            .done = answered,
            .context = &exchange,
        });
    event_loop_run(session->loop);
    return exchange.is_answered;
}

bool store_session_ask(
    struct store_session *session, const struct store_session_question *question) {
    if (!exchange(session, question)) {
        return false;
    }
    if (store_operation_reply_kind(question->request.operation) != STORE_REPLY_NONE) {
        return true;
    }
    /* Without a reply nothing tells a request that was refused; the one after it does. */
    return exchange(session, &(struct store_session_question){.request = {.operation = STORE_PING,
                                                                  .nonce = (uint32_t)getpid()}});
}

static void take_byte(void *context, const struct store_reply *reply) {
    *(int *)context = reply->byte;
}

int store_session_ask_byte(
    struct store_session *session, const struct store_session_question *question) {
    int byte = -1;
    struct store_session_question asked = *question;
    asked.take = take_byte;
    asked.context = &byte;
    return store_session_ask(session, &asked) ? byte : -1;
}

void store_session_pause(struct store_session *session, struct duration length) {
    event_timer_set(session->timer, instant_after(event_loop_now(session->loop), length));
    event_loop_run(session->loop);
}
