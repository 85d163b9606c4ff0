/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/rendezvous_greeting.h"

#include <stdlib.h>

#include "base/text.h"
#include "core/rendezvous_key.h"
#include "host/rendezvous_backend.h"
#include "wire/rendezvous_state_pickle.h"

/* Longest settings worth showing: two numbers. */
#define SETTINGS_SHOWN 32

static void ask(struct rendezvous_greeting *greeting, struct store_request request,
    void (*done)(void *context, const struct store_client_result *result)) {
    struct store_client_call call = {
        .request = request,
        .is_raw = true,
        .timeout = greeting->answer_timeout,
        .done = done,
        .context = greeting,
    };
    rendezvous_lanes_send(greeting->lanes, RENDEZVOUS_LANE_ASKER, &call);
}

static bool is_answer(
    struct rendezvous_greeting *greeting, const struct store_client_result *result) {
    if (result->code != FAILURE_NONE) {
        greeting->failed(greeting->context, result);
    }
    return result->code == FAILURE_NONE;
}

static char *own_settings(const struct rendezvous_greeting *greeting) {
    return text_format("%d:%d", greeting->minimum_nodes, greeting->maximum_nodes);
}

static void record_begun(void *context, const struct store_client_result *result) {
    struct rendezvous_greeting *greeting = context;
    if (is_answer(greeting, result)) {
        greeting->greeted(greeting->context, greeting->has_presence);
    }
}

/* As PyTorch begins a record: with a word that says that there is none yet. */
static void begin_record(struct rendezvous_greeting *greeting) {
    struct text key = {0};
    rendezvous_key_write_record(greeting->run_id, &key);
    ask(greeting,
        (struct store_request){.operation = STORE_COMPARE_SET,
            .key = slice_from_string(text_string(&key)),
            .value = slice_from_string(RENDEZVOUS_STATE_ABSENT)},
        record_begun);
    text_clear(&key);
}

static bool is_showable(struct slice settings) {
    for (size_t i = 0; i < settings.length; i++) {
        bool is_digit = settings.data[i] >= '0' && settings.data[i] <= '9';
        if (!is_digit && settings.data[i] != ':') {
            return false;
        }
    }
    return settings.length <= SETTINGS_SHOWN;
}

static void refuse(struct rendezvous_greeting *greeting, struct slice theirs, const char *mine) {
    const char *shown = is_showable(theirs) ? (const char *)theirs.data : "something else";
    int length = is_showable(theirs) ? (int)theirs.length : SETTINGS_SHOWN;
    char *reason = text_format(
        "a job '%s' with other settings uses this store: it has --nnodes %.*s, this node was "
        "given %s; give all nodes of a job the same --nnodes, or this job another --rdzv-id",
        greeting->run_id, length, shown, mine);
    greeting->refused(greeting->context, reason);
    free(reason);
}

static void settings_compared(void *context, const struct store_client_result *result) {
    struct rendezvous_greeting *greeting = context;
    if (!is_answer(greeting, result)) {
        return;
    }
    char *mine = own_settings(greeting);
    if (slice_equals(result->reply->blob, slice_from_string(mine))) {
        begin_record(greeting);
    } else {
        refuse(greeting, result->reply->blob, mine);
    }
    free(mine);
}

static void presence_checked(void *context, const struct store_client_result *result) {
    struct rendezvous_greeting *greeting = context;
    if (!is_answer(greeting, result)) {
        return;
    }
    struct text key = {0};
    char *mine = own_settings(greeting);
    greeting->has_presence = result->reply->byte == STORE_READY;
    rendezvous_key_write_settings(greeting->run_id, &key);
    ask(greeting,
        (struct store_request){.operation = STORE_COMPARE_SET,
            .key = slice_from_string(text_string(&key)),
            .value = slice_from_string(mine)},
        settings_compared);
    free(mine);
    text_clear(&key);
}

void rendezvous_greeting_begin(struct rendezvous_greeting *greeting) {
    struct text key = {0};
    rendezvous_key_write_presences(greeting->run_id, &key);
    text_append(&key, RENDEZVOUS_PRESENCE_SERVED);
    struct slice keys[] = {slice_from_string(text_string(&key))};
    ask(greeting, (struct store_request){.operation = STORE_CHECK, .keys = keys, .count = 1},
        presence_checked);
    text_clear(&key);
}
