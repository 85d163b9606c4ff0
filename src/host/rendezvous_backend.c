/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/rendezvous_backend.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/text.h"
#include "core/rendezvous_key.h"
#include "host/rendezvous_changes.h"
#include "host/rendezvous_greeting.h"
#include "host/rendezvous_lanes.h"
#include "wire/rendezvous_state_pickle.h"

struct rendezvous_backend {
    struct event_loop *loop;
    struct rendezvous_backend_settings settings;
    struct rendezvous_lanes lanes;
    struct rendezvous_changes changes;
    struct rendezvous_greeting greeting;
    char *run_id;
    char *record_key;
    bool is_up; /* `connected` was told */
    bool has_presence;
    struct bytes token; /* the record's text as seen last */
    struct bytes writing;
    bool is_write_quiet;
    char *presence_key; /* NULL: not present */
    bool has_finished;
};

/* Ends. */

static void drop(struct rendezvous_backend *backend) {
    backend->is_up = false;
    rendezvous_changes_forget(&backend->changes);
    rendezvous_lanes_drop(&backend->lanes);
    free(backend->presence_key);
    backend->presence_key = NULL;
}

static void lose(struct rendezvous_backend *backend, const char *message, bool is_silent) {
    const struct rendezvous_backend_observer *observer = &backend->settings.observer;
    if (rendezvous_lanes_are_dropped(&backend->lanes)) {
        return;
    }
    char *reason = memory_duplicate_string(message);
    drop(backend);
    observer->lost(observer->context, reason, is_silent);
    free(reason);
}

static void break_down(struct rendezvous_backend *backend, const char *reason) {
    const struct rendezvous_backend_observer *observer = &backend->settings.observer;
    char *copy = memory_duplicate_string(reason);
    drop(backend);
    observer->broken(observer->context, copy);
    free(copy);
}

/* Whether the answer can be used; else the connection is given up. */
static bool is_answer(
    struct rendezvous_backend *backend, const struct store_client_result *result) {
    if (result->code == FAILURE_NONE) {
        return true;
    }
    if (result->code == FAILURE_PROTOCOL || result->code == FAILURE_LIMIT) {
        break_down(backend, result->message);
    } else if (result->code != FAILURE_CANCELLED) {
        lose(backend, result->message, result->code == FAILURE_TIMEOUT);
    }
    return false;
}

/* Requests. */

static void answered_nothing(void *context, const struct store_client_result *result) {
    (void)is_answer(context, result);
}

static void ask(struct rendezvous_backend *backend, struct store_request request,
    void (*done)(void *context, const struct store_client_result *result)) {
    rendezvous_lanes_ask(
        &backend->lanes, &request, done != NULL ? done : answered_nothing, backend);
}

static void ask_set(struct rendezvous_backend *backend, const char *key, const char *value) {
    ask(backend,
        (struct store_request){.operation = STORE_SET,
            .key = slice_from_string(key),
            .value = slice_from_string(value)},
        NULL);
}

static void ask_add(struct rendezvous_backend *backend, const char *key, int64_t number,
    void (*done)(void *context, const struct store_client_result *result)) {
    ask(backend,
        (struct store_request){
            .operation = STORE_ADD, .key = slice_from_string(key), .number = number},
        done);
}

/* Watching. */

static bool is_usable(void *context, const struct store_client_result *result) {
    return is_answer(context, result);
}

static void changed(void *context) {
    struct rendezvous_backend *backend = context;
    backend->settings.observer.changed(backend->settings.observer.context);
}

void rendezvous_backend_tell_watchers(struct rendezvous_backend *backend) {
    rendezvous_changes_tell(&backend->changes);
}

/* The record. */

static void keep_token(struct rendezvous_backend *backend, struct slice text) {
    bytes_clear(&backend->token);
    (void)!bytes_append(&backend->token, text.data, text.length); /* has no ceiling */
}

static void refuse_record(struct rendezvous_backend *backend, const char *why) {
    char *reason =
        text_format("the record of job '%s' in the store (key %s) cannot be used: %s; it "
                    "is left as it is. Give this job another --rdzv-id, or remove it",
            backend->run_id, backend->record_key + 1, why);
    break_down(backend, reason);
    free(reason);
}

/* As is_answer, of a request that is answered with the record. */
static bool is_record(
    struct rendezvous_backend *backend, const struct store_client_result *result) {
    if (result->code == FAILURE_LIMIT) {
        refuse_record(backend, result->message);
        return false;
    }
    return is_answer(backend, result);
}

/* Reads the record and keeps it as the one seen last; false when it makes no sense. */
static bool read_record(struct rendezvous_backend *backend, struct slice text, bool *out_is_absent,
    struct rendezvous_state *out_state) {
    struct text why = {0};
    *out_is_absent = text.length == 0;
    enum failure_code code = FAILURE_NONE;
    if (text.length > 0) {
        code = rendezvous_state_read_text(text, out_is_absent, out_state, &why);
    }
    if (code == FAILURE_NONE) {
        keep_token(backend, text);
    } else {
        refuse_record(backend, text_string(&why));
    }
    text_clear(&why);
    return code == FAILURE_NONE;
}

static void record_read(void *context, const struct store_client_result *result) {
    struct rendezvous_backend *backend = context;
    const struct rendezvous_backend_observer *observer = &backend->settings.observer;
    struct rendezvous_state state = {0};
    bool is_absent;
    if (is_record(backend, result) &&
        read_record(backend, result->reply->blob, &is_absent, &state)) {
        observer->record(observer->context, is_absent ? NULL : &state);
    }
    rendezvous_state_clear(&state);
}

void rendezvous_backend_fetch(struct rendezvous_backend *backend) {
    rendezvous_changes_read(&backend->changes);
    ask(backend,
        (struct store_request){
            .operation = STORE_GET, .key = slice_from_string(backend->record_key)},
        record_read);
}

static void write_told(void *context) {
    struct rendezvous_backend *backend = context;
    backend->settings.observer.written(backend->settings.observer.context, true, NULL);
}

/* A write is done when the watchers were told of it: who has written its last word goes at once. */
static void record_written(void *context, const struct store_client_result *result) {
    struct rendezvous_backend *backend = context;
    const struct rendezvous_backend_observer *observer = &backend->settings.observer;
    if (!is_record(backend, result)) {
        return;
    }
    if (slice_equals(result->reply->blob, bytes_slice(&backend->writing))) {
        keep_token(backend, result->reply->blob);
        if (backend->is_write_quiet) {
            observer->written(observer->context, true, NULL);
        } else {
            rendezvous_changes_tell_of_write(&backend->changes);
        }
        return;
    }
    struct rendezvous_state state = {0};
    bool is_absent;
    if (read_record(backend, result->reply->blob, &is_absent, &state)) {
        observer->written(observer->context, false, is_absent ? NULL : &state);
    }
    rendezvous_state_clear(&state);
}

void rendezvous_backend_write(
    struct rendezvous_backend *backend, const struct rendezvous_state *state, bool is_quiet) {
    backend->is_write_quiet = is_quiet;
    bytes_clear(&backend->writing);
    if (rendezvous_state_write_text(state, &backend->writing) != FAILURE_NONE) {
        break_down(backend, "the record cannot be written: too many nodes, or an address that is "
                            "no UTF-8");
        return;
    }
    struct slice expected = backend->token.length > 0 ? bytes_slice(&backend->token)
                                                      : slice_from_string(RENDEZVOUS_STATE_ABSENT);
    ask(backend,
        (struct store_request){.operation = STORE_COMPARE_SET,
            .key = slice_from_string(backend->record_key),
            .expected = expected,
            .value = bytes_slice(&backend->writing)},
        record_written);
}

/* Presence. */

void rendezvous_backend_present(
    struct rendezvous_backend *backend, const struct node_identity *identity, bool has_finished) {
    struct text key = {0};
    rendezvous_key_write_presence(backend->run_id, identity, &key);
    if (backend->presence_key != NULL && !text_equals(backend->presence_key, text_string(&key))) {
        ask(backend,
            (struct store_request){
                .operation = STORE_DELETE, .key = slice_from_string(backend->presence_key)},
            NULL);
    }
    free(backend->presence_key);
    backend->presence_key = text_take(&key);
    backend->has_finished = has_finished;
    if (backend->has_presence) {
        ask_set(backend, backend->presence_key,
            has_finished ? RENDEZVOUS_PRESENCE_FINISHED : RENDEZVOUS_PRESENCE_RUNNING);
    }
}

void rendezvous_backend_beat(struct rendezvous_backend *backend) {
    if (backend->has_presence && backend->presence_key != NULL) {
        ask_set(backend, backend->presence_key,
            backend->has_finished ? RENDEZVOUS_PRESENCE_FINISHED : RENDEZVOUS_PRESENCE_RUNNING);
    }
    rendezvous_changes_read(&backend->changes);
}

static void finished_counted(void *context, const struct store_client_result *result) {
    struct rendezvous_backend *backend = context;
    const struct rendezvous_backend_observer *observer = &backend->settings.observer;
    if (is_answer(backend, result)) {
        observer->finished_count(observer->context, result->reply->integer);
    }
}

void rendezvous_backend_count_finished(struct rendezvous_backend *backend, int64_t round) {
    struct text key = {0};
    rendezvous_key_write_round(backend->run_id, round, &key);
    text_append(&key, "torchelastic/agent/terminal_state/num_members");
    ask_add(backend, text_string(&key), 0, finished_counted);
    text_clear(&key);
}

void rendezvous_backend_delete(struct rendezvous_backend *backend, const char *key) {
    ask(backend, (struct store_request){.operation = STORE_DELETE, .key = slice_from_string(key)},
        NULL);
}

/* The roll. */

static void roll_answered(void *context, const struct store_client_result *result) {
    struct rendezvous_backend *backend = context;
    if (is_answer(backend, result)) {
        backend->settings.observer.roll_answered(backend->settings.observer.context);
    }
}

void rendezvous_backend_call_roll(struct rendezvous_backend *backend, int64_t round, int number) {
    struct text_list keys = {0};
    struct slice *slices = memory_allocate((size_t)number * sizeof *slices);
    for (int rank = 0; rank < number; rank++) {
        struct text key = {0};
        rendezvous_key_write_roll(backend->run_id, round, rank, &key);
        text_list_add_taken(&keys, text_take(&key));
        slices[rank] = slice_from_string(keys.items[rank]);
    }
    struct store_client_call call = {
        .request = {.operation = STORE_WAIT, .keys = slices, .count = (size_t)number},
        .is_raw = true,
        .timeout = DURATION_FOREVER,
        .done = roll_answered,
        .context = backend,
    };
    (void)rendezvous_backend_wait(backend, &call); /* copies what it needs */
    free(slices);
    text_list_clear(&keys);
}

void rendezvous_backend_answer_roll(struct rendezvous_backend *backend, int64_t round, int rank) {
    struct text key = {0};
    rendezvous_key_write_roll(backend->run_id, round, rank, &key);
    ask_set(backend, text_string(&key), "");
    text_clear(&key);
}

/* Connecting: the three connections, then what must be known before the record is read. */

static void greeted(void *context, bool has_presence) {
    struct rendezvous_backend *backend = context;
    const struct rendezvous_backend_observer *observer = &backend->settings.observer;
    backend->has_presence = has_presence;
    backend->is_up = true;
    observer->connected(observer->context, has_presence);
}

static void refused(void *context, const char *reason) {
    break_down(context, reason);
}

static void not_greeted(void *context, const struct store_client_result *result) {
    (void)is_record(context, result);
}

static void lanes_connected(void *context) {
    rendezvous_greeting_begin(&((struct rendezvous_backend *)context)->greeting);
}

static void lanes_ended(void *context, const struct failure *failure) {
    struct rendezvous_backend *backend = context;
    if (failure->code == FAILURE_MALFORMED || failure->code == FAILURE_INVALID ||
        failure->code == FAILURE_PROTOCOL || failure->code == FAILURE_LIMIT) {
        break_down(backend, failure->message);
    } else {
        lose(backend, failure->message, failure->code == FAILURE_TIMEOUT);
    }
}

void rendezvous_backend_connect(struct rendezvous_backend *backend, struct instant deadline) {
    drop(backend);
    bytes_clear(&backend->token);
    rendezvous_lanes_open(&backend->lanes, instant_until(event_loop_now(backend->loop), deadline));
}

void rendezvous_backend_disconnect(struct rendezvous_backend *backend) {
    drop(backend);
}

/* The user's own. */

bool rendezvous_backend_ask(
    struct rendezvous_backend *backend, const struct store_client_call *call) {
    if (backend->is_up) {
        rendezvous_lanes_send(&backend->lanes, RENDEZVOUS_LANE_ASKER, call);
    }
    return backend->is_up;
}

bool rendezvous_backend_wait(
    struct rendezvous_backend *backend, const struct store_client_call *call) {
    if (backend->is_up) {
        rendezvous_lanes_send(&backend->lanes, RENDEZVOUS_LANE_WAITER, call);
    }
    return backend->is_up;
}

void rendezvous_backend_cancel_waits(struct rendezvous_backend *backend) {
    rendezvous_lanes_renew_waiter(&backend->lanes);
}

/* Life. */

struct rendezvous_backend *rendezvous_backend_new(
    struct event_loop *loop, const struct rendezvous_backend_settings *settings) {
    struct rendezvous_backend *backend = memory_allocate(sizeof *backend);
    struct text record = {0};
    backend->loop = loop;
    backend->settings = *settings;
    backend->run_id = memory_duplicate_string(settings->run_id);
    backend->lanes = (struct rendezvous_lanes){
        .loop = loop,
        .path = memory_duplicate_string(settings->path),
        .host = memory_duplicate_string(settings->host),
        .port = settings->port,
        .silence_timeout = settings->silence_timeout,
        .answer_timeout = settings->answer_timeout,
        .connected = lanes_connected,
        .ended = lanes_ended,
        .context = backend,
    };
    backend->greeting = (struct rendezvous_greeting){
        .lanes = &backend->lanes,
        .run_id = backend->run_id,
        .minimum_nodes = settings->minimum_nodes,
        .maximum_nodes = settings->maximum_nodes,
        .answer_timeout = settings->answer_timeout,
        .greeted = greeted,
        .refused = refused,
        .failed = not_greeted,
        .context = backend,
    };
    rendezvous_key_write_record(settings->run_id, &record);
    backend->record_key = text_take(&record);
    backend->changes = (struct rendezvous_changes){
        .lanes = &backend->lanes,
        .run_id = backend->run_id,
        .is_answer = is_usable,
        .changed = changed,
        .told = write_told,
        .context = backend,
    };
    return backend;
}

void rendezvous_backend_free(struct rendezvous_backend *backend) {
    if (backend == NULL) {
        return;
    }
    drop(backend);
    bytes_clear(&backend->token);
    bytes_clear(&backend->writing);
    free(backend->lanes.path);
    free(backend->lanes.host);
    free(backend->run_id);
    free(backend->record_key);
    free(backend);
}
