/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/rendezvous/host_question.h"

#include <errno.h>
#include <stdlib.h>

#include "base/memory.h"
#include "core/rendezvous/rendezvous_key.h"
#include "host/store/store_client.h"

/* A process that ends and another that begins at the same port are not told apart in less. */
#define REFUSAL_PATIENCE_MILLISECONDS 20

struct host_question {
    struct store_client *client;
    void (*done)(void *context, enum host_question_outcome outcome,
        const struct host_answer *answer, const char *reason);
    void *context;
    bool is_settled;
};

/* The user may free the question. */
static void settle(struct host_question *question, enum host_question_outcome outcome,
    const struct host_answer *answer, const char *reason) {
    if (!question->is_settled) {
        question->is_settled = true;
        question->done(question->context, outcome, answer, reason);
    }
}

static enum host_question_outcome outcome_of(enum failure_code code) {
    return code == FAILURE_TIMEOUT ? HOST_QUESTION_SILENT : HOST_QUESTION_FOREIGN;
}

static void connected(void *context, const struct failure *failure) {
    struct host_question *question = context;
    if (failure != NULL) {
        bool is_refused = failure->system_error == ECONNREFUSED;
        settle(question, is_refused ? HOST_QUESTION_REFUSED : outcome_of(failure->code), NULL,
            failure->message);
    }
}

static void take_answer(struct host_question *question, struct slice text) {
    struct host_answer answer;
    if (host_answer_read(text, &answer) == FAILURE_NONE) {
        settle(question, HOST_QUESTION_ANSWERED, &answer, NULL);
        host_answer_clear(&answer);
    } else {
        settle(question, HOST_QUESTION_FOREIGN, NULL,
            "a store is there, but it does not say who hosts this job's store");
    }
}

/* Why there is no connection is told by `connected`. */
static void answered(void *context, const struct store_client_result *result) {
    struct host_question *question = context;
    if (result->code == FAILURE_NONE) {
        take_answer(question, result->reply->blob);
    }
}

static void lost(void *context, const struct failure *failure) {
    settle(context, outcome_of(failure->code), NULL, failure->message);
}

struct host_question *host_question_ask(
    struct event_loop *loop, const struct host_question_settings *settings) {
    struct host_question initial = {.done = settings->done, .context = settings->context};
    struct host_question *question = memory_duplicate(&initial, sizeof initial);
    struct text key = {0};
    struct store_client_settings client = {
        .host = settings->place->names,
        .port = settings->place->port,
        .key = settings->key,
        .connect_timeout = settings->patience,
        .refusal_patience = duration_from_milliseconds(REFUSAL_PATIENCE_MILLISECONDS),
        .silence_timeout = settings->patience,
        .limits = {HOST_ANSWER_MAXIMUM_SIZE, HOST_ANSWER_MAXIMUM_SIZE},
        .connected = connected,
        .lost = lost,
        .context = question,
    };
    rendezvous_key_write_host(settings->run_id, &key);
    question->client = store_client_new(loop, &client);
    struct store_client_call call = {
        .request = {.operation = STORE_GET, .key = slice_from_string(text_string(&key))},
        .is_raw = true,
        .timeout = settings->patience,
        .done = answered,
        .context = question,
    };
    store_client_send(question->client, &call);
    text_clear(&key);
    return question;
}

void host_question_free(struct host_question *question) {
    if (question != NULL) {
        question->is_settled = true;
        store_client_free(question->client);
        free(question);
    }
}
