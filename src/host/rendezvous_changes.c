/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/rendezvous_changes.h"

#include "base/text.h"
#include "core/rendezvous_key.h"

/* Keys of changes longer ago are taken away: nobody who reads now can wait for them. */
#define CHANGES_KEPT 256

static void answered_nothing(void *context, const struct store_client_result *result) {
    struct rendezvous_changes *changes = context;
    (void)changes->is_answer(changes->context, result);
}

static void ask_about(struct rendezvous_changes *changes, enum store_operation operation,
    int64_t number, void (*done)(void *context, const struct store_client_result *result)) {
    struct text key = {0};
    rendezvous_key_write_changed(changes->run_id, number, &key);
    struct store_request request = {
        .operation = operation, .key = slice_from_string(text_string(&key))};
    rendezvous_lanes_ask(changes->lanes, &request, done, changes);
    text_clear(&key);
}

static void count(struct rendezvous_changes *changes, int64_t more,
    void (*done)(void *context, const struct store_client_result *result)) {
    struct text key = {0};
    rendezvous_key_write_changes(changes->run_id, &key);
    struct store_request request = {
        .operation = STORE_ADD, .key = slice_from_string(text_string(&key)), .number = more};
    rendezvous_lanes_ask(changes->lanes, &request, done, changes);
    text_clear(&key);
}

/* Watching. */

static void await_next(struct rendezvous_changes *changes);

static void change_came(void *context, const struct store_client_result *result) {
    struct rendezvous_changes *changes = context;
    if (!changes->is_answer(changes->context, result)) {
        return;
    }
    bool is_own = changes->awaited == changes->own;
    changes->known = changes->awaited;
    changes->awaited = 0;
    if (is_own) {
        await_next(changes);
    } else {
        changes->changed(changes->context);
    }
}

static void await_next(struct rendezvous_changes *changes) {
    if (changes->awaited != 0) {
        return;
    }
    struct text key = {0};
    changes->awaited = changes->known + 1;
    rendezvous_key_write_changed(changes->run_id, changes->awaited, &key);
    struct slice keys[] = {slice_from_string(text_string(&key))};
    struct store_client_call call = {
        .request = {.operation = STORE_WAIT, .keys = keys, .count = 1},
        .is_raw = true,
        .timeout = DURATION_FOREVER,
        .done = change_came,
        .context = changes,
    };
    rendezvous_lanes_send(changes->lanes, RENDEZVOUS_LANE_WATCHER, &call);
    text_clear(&key);
}

/* A watcher that still waits for a change of the past waits for somebody who died between counting
 * and telling. */
static void count_read(void *context, const struct store_client_result *result) {
    struct rendezvous_changes *changes = context;
    if (!changes->is_answer(changes->context, result)) {
        return;
    }
    changes->known = result->reply->integer;
    if (changes->awaited != 0 && changes->awaited <= changes->known) {
        ask_about(changes, STORE_SET, changes->awaited, answered_nothing);
    }
    await_next(changes);
}

void rendezvous_changes_forget(struct rendezvous_changes *changes) {
    changes->known = 0;
    changes->awaited = 0;
    changes->own = 0;
}

void rendezvous_changes_read(struct rendezvous_changes *changes) {
    count(changes, 0, count_read);
}

/* Telling. */

static void tell(struct rendezvous_changes *changes, int64_t number,
    void (*done)(void *context, const struct store_client_result *result)) {
    changes->own = number;
    ask_about(changes, STORE_SET, number, done);
    if (number > CHANGES_KEPT) {
        ask_about(changes, STORE_DELETE, number - CHANGES_KEPT, answered_nothing);
    }
}

static void change_counted(void *context, const struct store_client_result *result) {
    struct rendezvous_changes *changes = context;
    if (changes->is_answer(changes->context, result)) {
        tell(changes, result->reply->integer, answered_nothing);
    }
}

static void write_told(void *context, const struct store_client_result *result) {
    struct rendezvous_changes *changes = context;
    if (changes->is_answer(changes->context, result)) {
        changes->told(changes->context);
    }
}

static void write_counted(void *context, const struct store_client_result *result) {
    struct rendezvous_changes *changes = context;
    if (changes->is_answer(changes->context, result)) {
        tell(changes, result->reply->integer, write_told);
    }
}

void rendezvous_changes_tell(struct rendezvous_changes *changes) {
    count(changes, 1, change_counted);
}

void rendezvous_changes_tell_of_write(struct rendezvous_changes *changes) {
    count(changes, 1, write_counted);
}
