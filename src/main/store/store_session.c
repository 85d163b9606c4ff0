/* SPDX-License-Identifier: BSD-3-Clause */
#include "main/store/store_session.h"

#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/duration.h"
#include "base/memory.h"
#include "host/loop/clock.h"

/* Servers can be told to take more than PyTorch's do. */
#define LARGEST_VALUE ((size_t)1 << 30)
/* What libmuster takes for the default. */
#define UNSET 0.0
#define SHORTEST_TIMEOUT 1e-9

struct store_session {
    const char *program;
    struct muster_store *store;
};

/* The names that PyTorch has for the requests (QueryType). */
static const char *name_of(enum muster_store_operation operation) {
    static const char *const names[] = {
        [MUSTER_STORE_SET] = "SET",
        [MUSTER_STORE_GET] = "GET",
        [MUSTER_STORE_ADD] = "ADD",
        [MUSTER_STORE_APPEND] = "APPEND",
        [MUSTER_STORE_COMPARE_SET] = "COMPARE_SET",
        [MUSTER_STORE_CHECK] = "CHECK",
        [MUSTER_STORE_WAIT] = "WAIT",
        [MUSTER_STORE_DELETE_KEY] = "DELETE_KEY",
        [MUSTER_STORE_NUM_KEYS] = "GETNUMKEYS",
        [MUSTER_STORE_MULTI_GET] = "MULTI_GET",
        [MUSTER_STORE_MULTI_SET] = "MULTI_SET",
        [MUSTER_STORE_QUEUE_PUSH] = "QUEUE_PUSH",
        [MUSTER_STORE_QUEUE_POP] = "QUEUE_POP",
        [MUSTER_STORE_QUEUE_LEN] = "QUEUE_LEN",
        [MUSTER_STORE_LIST_KEYS] = "LIST_KEYS",
        [MUSTER_STORE_BARRIER] = "BARRIER",
        [MUSTER_STORE_PING] = "PING",
    };
    return names[operation];
}

/* A command only looks into a file store: it does not create the file and is not counted as a
 * user. */
static enum muster_error open_store(const struct store_place *place, double timeout,
    struct muster_store **out_store, struct muster_failure *failure) {
    if (place->path != NULL) {
        struct muster_file_store_settings settings = MUSTER_FILE_STORE_SETTINGS;
        settings.path = place->path;
        settings.is_visitor = 1;
        settings.timeout = timeout;
        return muster_store_new_file(&settings, out_store, failure);
    }
    struct muster_tcp_store_settings settings = MUSTER_TCP_STORE_SETTINGS;
    settings.host = place->host;
    settings.port = place->port;
    settings.timeout = timeout;
    settings.silence_timeout = place->silence_timeout;
    settings.token_file = place->token_file;
    settings.value_maximum = LARGEST_VALUE;
    return muster_store_new_tcp(&settings, out_store, failure);
}

struct store_session *store_session_new(
    const char *program, const struct store_place *place, double timeout) {
    struct muster_failure failure;
    struct store_session *session = memory_allocate(sizeof *session);
    session->program = program;
    if (open_store(place, timeout == UNSET ? SHORTEST_TIMEOUT : timeout, &session->store,
            &failure) != MUSTER_OK) {
        fprintf(stderr, "%s: error: %s\n", program, failure.message);
        free(session);
        return NULL;
    }
    return session;
}

void store_session_free(struct store_session *session) {
    if (session != NULL) {
        muster_store_free(session->store);
        free(session);
    }
}

struct muster_store *store_session_store(const struct store_session *session) {
    return session->store;
}

/* Hands a good answer on. */
static void take_answer(void *context, const struct muster_store_result *result) {
    const struct store_session_question *question = context;
    if (result->error == MUSTER_OK && question->take != NULL) {
        question->take(question->context, result);
    }
}

static bool exchange(struct store_session *session, const struct store_session_question *question) {
    struct muster_failure failure;
    struct store_session_question asked = *question;
    asked.request.size = sizeof asked.request;
    asked.request.timeout = question->has_no_time_limit ? -1 : UNSET;
    if (muster_store_call(session->store, &asked.request, take_answer, &asked, &failure) ==
        MUSTER_OK) {
        return true;
    }
    fprintf(stderr, "%s: error: %s: %s\n", session->program, name_of(asked.request.operation),
        failure.message);
    return false;
}

static bool has_no_answer(enum muster_store_operation operation) {
    return operation == MUSTER_STORE_SET || operation == MUSTER_STORE_APPEND ||
           operation == MUSTER_STORE_MULTI_SET || operation == MUSTER_STORE_QUEUE_PUSH;
}

bool store_session_ask(
    struct store_session *session, const struct store_session_question *question) {
    if (!exchange(session, question)) {
        return false;
    }
    /* For a request without an answer, success is known only when the next request is answered, so
     * a PING follows. */
    static const struct store_session_question ping = {.request.operation = MUSTER_STORE_PING};
    return !has_no_answer(question->request.operation) || exchange(session, &ping);
}

static void take_number(void *context, const struct muster_store_result *result) {
    *(int *)context = (int)result->number;
}

int store_session_ask_whether(
    struct store_session *session, const struct store_session_question *question) {
    int answer = -1;
    struct store_session_question asked = *question;
    asked.take = take_number;
    asked.context = &answer;
    return store_session_ask(session, &asked) ? answer : -1;
}

void store_session_pause(struct store_session *session, double seconds) {
    struct instant end = instant_after(clock_now(), duration_from_seconds(seconds));
    struct duration left;
    while ((left = instant_until(clock_now(), end)).nanoseconds > 0) {
        struct pollfd pollfd = {.fd = muster_store_fd(session->store), .events = POLLIN};
        int64_t milliseconds = duration_milliseconds_ceiling(left);
        if (poll(&pollfd, 1, milliseconds > INT_MAX ? INT_MAX : (int)milliseconds) > 0) {
            (void)muster_store_process(session->store, NULL); /* a loss is told by the next call */
        }
    }
}
