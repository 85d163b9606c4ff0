/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/store/store_session.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "host/loop/event_loop.h"
#include "host/store/job_token.h"
#include "host/store/store_access.h"

struct store_session {
    const char *program;
    struct duration timeout;
    struct event_loop *loop;
    struct event_timer *timer;
    struct job_token *token; /* or NULL */
    struct store_access *store;
};

static void stop_loop(void *context) {
    event_loop_stop(context);
}

/* A command only looks into a file store: it does not create the file and is not counted as a
 * user. */
static struct store_access *open_access(
    const struct store_session *session, const struct store_place *place, struct duration timeout) {
    struct event_loop *loop = session->loop;
    if (place->path != NULL) {
        return store_access_over_file(
            loop, &(struct file_store_settings){
                      .path = place->path, .is_visitor = true, .connect_timeout = timeout});
    }
    return store_access_over_tcp(loop, &(struct store_client_settings){
                                           .host = place->host,
                                           .port = place->port,
                                           .connect_timeout = timeout,
                                           .key = job_token_key(session->token),
                                           .silence_timeout = place->silence_timeout,
                                       });
}

struct store_session *store_session_new(
    const char *program, const struct store_place *place, struct duration timeout) {
    struct store_session *session = memory_allocate(sizeof *session);
    session->program = program;
    session->timeout = timeout;
    struct failure failure = {0};
    enum failure_code code = event_loop_new(&session->loop, &failure);
    if (code == FAILURE_NONE && place->token_file != NULL) {
        code = job_token_open(NULL, place->token_file, &session->token, &failure);
    }
    if (code != FAILURE_NONE) {
        fprintf(stderr, "%s: error: %s\n", program, failure.message);
        event_loop_free(session->loop);
        free(session);
        return NULL;
    }
    session->timer = event_timer_new(session->loop, stop_loop, session->loop);
    session->store = open_access(session, place, timeout);
    return session;
}

void store_session_free(struct store_session *session) {
    if (session == NULL) {
        return;
    }
    store_access_free(session->store);
    event_timer_free(session->timer);
    event_loop_free(session->loop);
    job_token_free(session->token);
    free(session);
}

/* The state of one question while its answer is awaited. */
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
    store_access_send(session->store,
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
    /* For a request without a reply, success is known only when the next request is answered, so a
     * PING follows. */
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
