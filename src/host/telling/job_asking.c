/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/telling/job_asking.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/text.h"
#include "host/loop/random_seed.h"
#include "host/store/store_client.h"

struct job_asking {
    struct event_loop *loop;
    struct job_asking_settings settings; /* the folder and the host are its own */
    char *folder;
    char *place; /* host and port, for people */
    struct store_client *client;
    struct event_timer *patience;
    struct job_question question;
    char *queue; /* of the answer */
    struct bytes answer;
    bool is_over;
};

static void finish(struct job_asking *asking, const struct failure *failure) {
    if (!asking->is_over) {
        asking->is_over = true;
        event_timer_stop(asking->patience);
        asking->settings.done(asking->settings.context, failure, bytes_slice(&asking->answer));
    }
}

static void fail(struct job_asking *asking, enum failure_code code, const char *why) {
    struct failure failure = {0};
    (void)failure_set(&failure, code, "%s", why);
    finish(asking, &failure);
}

static void is_late(void *context) {
    struct job_asking *asking = context;
    char *why = text_format("the job's host at %s has not answered in %g s", asking->place,
        duration_seconds(asking->settings.timeout));
    fail(asking, FAILURE_TIMEOUT, why);
    free(why);
}

static void connected(void *context, const struct failure *failure) {
    if (failure != NULL) {
        finish(context, failure);
    }
}

static void lost(void *context, const struct failure *failure) {
    finish(context, failure);
}

static void request(struct job_asking *asking, struct store_request wanted,
    void (*done)(void *context, const struct store_client_result *result)) {
    const struct store_client_call call = {
        .request = wanted,
        .is_raw = true,
        .timeout = asking->settings.timeout,
        .done = done,
        .context = asking,
    };
    store_client_send(asking->client, &call);
}

static void ask_for_piece(struct job_asking *asking);

/* Returns whether more is to come. */
static bool take_piece(struct job_asking *asking, struct slice piece) {
    char head = piece.length > 0 ? (char)piece.data[0] : '\0';
    struct slice body = piece.length > 0 ? slice_from(piece, 1) : piece;
    if (head == JOB_ANSWER_REFUSED) {
        char *why = text_format("%.*s", (int)body.length, (const char *)body.data);
        fail(asking, FAILURE_LIMIT, why);
        free(why);
    } else if ((head != JOB_ANSWER_MORE && head != JOB_ANSWER_LAST) ||
               bytes_append(&asking->answer, body.data, body.length) != FAILURE_NONE) {
        fail(asking, FAILURE_MALFORMED, "the answer of the job's host makes no sense");
    } else if (head == JOB_ANSWER_LAST) {
        finish(asking, NULL);
    }
    return head == JOB_ANSWER_MORE && !asking->is_over;
}

static void popped(void *context, const struct store_client_result *result) {
    struct job_asking *asking = context;
    if (result->code == FAILURE_CANCELLED || asking->is_over) {
        return;
    }
    if (result->code != FAILURE_NONE) {
        fail(asking, result->code, result->message);
    } else if (result->reply->pop.length == 0) {
        fail(asking, FAILURE_MISSING, "the job's store keeps no queue for an answer");
    } else if (take_piece(asking, result->reply->pop.front)) {
        ask_for_piece(asking);
    }
}

static void ask_for_piece(struct job_asking *asking) {
    request(asking,
        (struct store_request){
            .operation = STORE_QUEUE_POP, .key = slice_from_string(asking->queue)},
        popped);
}

static void checked(void *context, const struct store_client_result *result) {
    struct job_asking *asking = context;
    struct text text = {0};
    if (result->code == FAILURE_CANCELLED || asking->is_over) {
        return;
    }
    if (result->code != FAILURE_NONE) {
        fail(asking, result->code, result->message);
        return;
    }
    if (result->reply->byte != STORE_READY) {
        char *why = text_format(
            "no agent that keeps a chronicle of this job hosts the store at %s", asking->place);
        fail(asking, FAILURE_MISSING, why);
        free(why);
        return;
    }
    char *key = text_format("%s" TELLING_KEY_ASKED, asking->folder);
    job_question_write(&asking->question, &text);
    request(asking,
        (struct store_request){.operation = STORE_QUEUE_PUSH,
            .key = slice_from_string(key),
            .value = slice_from_string(text_string(&text))},
        NULL);
    ask_for_piece(asking);
    text_clear(&text);
    free(key);
}

static void check(struct job_asking *asking) {
    char *key = text_format("%s" TELLING_KEY_SERVED, asking->folder);
    struct slice keys[] = {slice_from_string(key)};
    request(asking, (struct store_request){.operation = STORE_CHECK, .keys = keys, .count = 1},
        checked);
    free(key);
}

struct job_asking *job_asking_new(
    struct event_loop *loop, const struct job_asking_settings *settings) {
    struct job_asking *asking = memory_allocate(sizeof *asking);
    *asking = (struct job_asking){.loop = loop,
        .settings = *settings,
        .folder = memory_duplicate_string(settings->folder),
        .place = text_format("%s:%d", settings->host, settings->port),
        .question = {.kind = settings->kind, .after = settings->after}};
    bytes_init(&asking->answer, JOB_ASKING_ANSWER_MAXIMUM);
    snprintf(asking->question.name, sizeof asking->question.name, "%016" PRIx64, random_seed());
    asking->queue = text_format("%s" TELLING_KEY_TOLD "%s", asking->folder, asking->question.name);
    const struct store_client_settings client = {
        .host = settings->host,
        .port = settings->port,
        .connect_timeout = settings->timeout,
        .key = settings->key,
        .connected = connected,
        .lost = lost,
        .context = asking,
    };
    asking->client = store_client_new(loop, &client);
    asking->patience = event_timer_new(loop, is_late, asking);
    event_timer_set(asking->patience, instant_after(event_loop_now(loop), settings->timeout));
    check(asking);
    return asking;
}

void job_asking_free(struct job_asking *asking) {
    if (asking == NULL) {
        return;
    }
    asking->is_over = true;
    store_client_free(asking->client);
    event_timer_free(asking->patience);
    bytes_clear(&asking->answer);
    free(asking->queue);
    free(asking->place);
    free(asking->folder);
    free(asking);
}
