/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/rendezvous/agent_admission.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/memory.h"
#include "core/rendezvous/rendezvous_key.h"
#include "core/rendezvous/rendezvous_waiting.h"

/* A shorter wait is not worth a word. */
#define TOLD_SECONDS 1
#define NO_VALUE "?" /* as in agent_neighbours.c */
#define MILLISECONDS_PER_SECOND 1000
#define DIGITS_MAXIMUM 24
/* A node whose clock is wrong, or a stranger, may have written any time. */
#define BELIEVED_SECONDS 86400

struct agent_admission {
    struct event_loop *loop;
    struct rendezvous_backend *backend;
    struct agent_admission_settings settings;
    struct text key;
    struct instant told; /* the time of the admission that was told last */
    bool is_asked;
    /* What was answered: a wall clock time, negative where no pause is the reason; 0: nothing. */
    int64_t answer;
};

struct agent_admission *agent_admission_new(struct event_loop *loop,
    struct rendezvous_backend *backend, const struct agent_admission_settings *settings) {
    struct agent_admission initial = {.loop = loop, .backend = backend, .settings = *settings};
    rendezvous_key_write_admission(settings->run_id, &initial.key);
    return memory_duplicate(&initial, sizeof initial);
}

void agent_admission_free(struct agent_admission *admission) {
    if (admission != NULL) {
        text_clear(&admission->key);
        free(admission);
    }
}

static bool ask(struct agent_admission *admission, struct store_request request,
    void (*answered)(void *context, const struct store_client_result *result)) {
    request.key = slice_from_string(text_string(&admission->key));
    struct store_client_call call = {
        .request = request,
        .is_raw = true,
        .timeout = admission->settings.answer_timeout,
        .done = answered,
        .context = admission,
    };
    return rendezvous_backend_ask(admission->backend, &call);
}

/* By the node that admits. */

static int64_t wall_milliseconds(const struct agent_admission *admission) {
    return event_loop_wall_time(admission->loop).nanoseconds /
           (NANOSECONDS_PER_SECOND / MILLISECONDS_PER_SECOND);
}

static void tell(struct agent_admission *admission, struct duration left, bool is_paused) {
    struct text value = {0};
    struct text line = {0};
    int64_t at = wall_milliseconds(admission) +
                 left.nanoseconds / (NANOSECONDS_PER_SECOND / MILLISECONDS_PER_SECOND);
    text_append_format(&value, "%" PRId64, is_paused ? at : -at);
    (void)ask(admission,
        (struct store_request){
            .operation = STORE_SET, .value = slice_from_string(text_string(&value))},
        NULL);
    rendezvous_waiting_describe_admission(left, is_paused, &line);
    log_info(
        admission->settings.log, "a node waits for a place in the world: %s", text_string(&line));
    text_clear(&value);
    text_clear(&line);
}

void agent_admission_note(
    struct agent_admission *admission, const struct rendezvous_admission *planned) {
    struct duration left = instant_until(event_loop_now(admission->loop), planned->at);
    if (!planned->is_awaited || planned->at.nanoseconds == admission->told.nanoseconds ||
        left.nanoseconds < TOLD_SECONDS * NANOSECONDS_PER_SECOND) {
        return;
    }
    admission->told = planned->at;
    tell(admission, left, planned->is_paused);
}

/* By the node that waits. */

static void answered(void *context, const struct store_client_result *result) {
    struct agent_admission *admission = context;
    admission->is_asked = false;
    admission->answer = 0;
    if (result->code == FAILURE_NONE && result->reply->blob.length <= DIGITS_MAXIMUM) {
        struct text text = {0};
        text_append_bytes(
            &text, (const char *)result->reply->blob.data, result->reply->blob.length);
        if (text_parse_integer(text_string(&text), &admission->answer) != FAILURE_NONE) {
            admission->answer = 0;
        }
        text_clear(&text);
    }
}

bool agent_admission_look(struct agent_admission *admission) {
    struct slice none = slice_from_string(NO_VALUE);
    if (!admission->is_asked) {
        admission->is_asked = ask(admission,
            (struct store_request){.operation = STORE_COMPARE_SET, .expected = none, .value = none},
            answered);
    }
    return admission->is_asked;
}

void agent_admission_describe(const struct agent_admission *admission, struct text *out) {
    int64_t most = (int64_t)BELIEVED_SECONDS * MILLISECONDS_PER_SECOND;
    int64_t now = wall_milliseconds(admission);
    bool is_paused = admission->answer > 0;
    if (admission->answer > INT64_MAX - most || admission->answer < most - INT64_MAX) {
        return;
    }
    int64_t left = (is_paused ? admission->answer : -admission->answer) - now;
    if (left > 0 && left <= most) {
        text_append(out, "; ");
        rendezvous_waiting_describe_admission(duration_from_milliseconds(left), is_paused, out);
    }
}
