/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/rendezvous/rendezvous_record_store.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/text.h"
#include "core/rendezvous/rendezvous_key.h"
#include "wire/rendezvous/delegation_text.h"
#include "wire/rendezvous/record_answer.h"
#include "wire/rendezvous/rendezvous_record_store_state.h"
#include "wire/rendezvous/rendezvous_state_pickle.h"

/* How often a file is opened when each time it fails before the node is connected. No network is
 * between the node and its file that could come right. */
#define FILE_ATTEMPTS_MAXIMUM 10

/* The end of a connection. */

static void forget_connection(struct rendezvous_record_store *store) {
    store->phase = RECORD_PHASE_DROPPED;
    store->pending_count = 0;
    store->changes.known = 0;
    store->changes.awaited = 0;
    store->changes.own = 0;
    store->record.is_begun = false;
    free(store->presence.key);
    free(store->presence.value);
    free(store->delegation.key);
    store->presence.key = NULL;
    free(store->refusal);
    store->refusal = NULL;
    store->presence.value = NULL;
    store->delegation.key = NULL;
    store->delegation.is_watched = false;
    store->delegation.is_offered = false;
    store->delegation.is_taken = false;
    text_list_clear(&store->clearing.keys);
    store->clearing.begun = 0;
}

static void drop(struct rendezvous_record_store *store, struct record_effects *effects) {
    if (store->phase != RECORD_PHASE_DROPPED) {
        forget_connection(store);
        (void)record_effects_add(effects, RECORD_EFFECT_DROP);
    }
}

void record_store_break_down(
    struct rendezvous_record_store *store, const char *reason, struct record_effects *effects) {
    drop(store, effects);
    record_effects_tell(
        effects, &(struct rendezvous_event){.kind = RENDEZVOUS_EVENT_BROKEN, .reason = reason});
}

static void open_lanes(
    struct rendezvous_record_store *store, struct duration pause, struct record_effects *effects) {
    drop(store, effects);
    bytes_clear(&store->record.token);
    store->phase = RECORD_PHASE_OPENING;
    struct record_effect *effect = record_effects_add(effects, RECORD_EFFECT_OPEN);
    effect->deadline = store->deadline;
    effect->refusal_patience = store->refusal_patience;
    effect->pause = pause;
}

/* A connection that ends before the node is connected is one more attempt that failed. When the
 * deadline has passed, the lanes cannot be opened any more. */
static bool may_try_again(const struct rendezvous_record_store *store) {
    bool has_begun = store->phase == RECORD_PHASE_GREETING || store->phase == RECORD_PHASE_OPENING;
    return has_begun && (!store->is_file || store->attempts < FILE_ATTEMPTS_MAXIMUM);
}

static void lose(struct rendezvous_record_store *store, enum failure_code code, const char *message,
    struct record_effects *effects) {
    drop(store, effects);
    record_effects_tell(
        effects, &(struct rendezvous_event){.kind = RENDEZVOUS_EVENT_CONNECTION_LOST,
                     .lost = {.reason = message,
                         .is_silent = code == FAILURE_TIMEOUT,
                         .was_heard = store->was_heard}});
}

/* Errors that would come again at the next attempt mean that the record cannot be used. All other
 * errors mean a lost connection. */
static void end(struct rendezvous_record_store *store, enum failure_code code, const char *message,
    struct record_effects *effects) {
    if (code == FAILURE_PROTOCOL || code == FAILURE_LIMIT || code == FAILURE_MALFORMED ||
        code == FAILURE_INVALID) {
        record_store_break_down(store, message, effects);
        return;
    }
    if (may_try_again(store)) {
        store->was_heard = true; /* on the lane that has ended */
        store->attempts++;
        open_lanes(store, backoff_next(&store->backoff), effects);
        return;
    }
    lose(store, code, message, effects);
}

/* Requests. */

/* The protocol is asked beside another question, where there is a second lane. */
static enum rendezvous_lane lane_of(
    const struct rendezvous_record_store *store, enum record_question_kind kind) {
    bool has_watcher = !store->delegates;
    if (kind == RECORD_QUESTION_NEXT_CHANGE || (kind == RECORD_QUESTION_PROTOCOL && has_watcher)) {
        return RENDEZVOUS_LANE_WATCHER;
    }
    return kind == RECORD_QUESTION_ROLL ? RENDEZVOUS_LANE_WAITER : RENDEZVOUS_LANE_ASKER;
}

void record_store_send(struct rendezvous_record_store *store, struct record_question question,
    struct record_effects *effects) {
    struct record_effect *effect = record_effects_add(effects, RECORD_EFFECT_SEND);
    effect->send.lane = lane_of(store, question.kind);
    effect->send.rests = question.kind == RECORD_QUESTION_STANDING;
    effect->send.tag = ++store->last_tag;
    effect->send.timeout =
        record_question_waits(question.kind) ? DURATION_FOREVER : store->answer_timeout;
    record_request_build(&question, store->run_id, &effect->send.own);
    store->pending = memory_reserve(
        store->pending, &store->pending_capacity, store->pending_count + 1, sizeof *store->pending);
    store->pending[store->pending_count++] =
        (struct record_pending){store->last_tag, question.kind, store->changes.known};
}

void record_store_ask(struct rendezvous_record_store *store, enum record_question_kind kind,
    int64_t number, struct record_effects *effects) {
    record_store_send(store, (struct record_question){.kind = kind, .number = number}, effects);
}

void record_store_watch_standing(
    struct rendezvous_record_store *store, struct record_effects *effects) {
    if (store->delegation.key != NULL && !store->delegation.is_watched) {
        store->delegation.is_watched = true;
        record_store_send(store,
            (struct record_question){
                .kind = RECORD_QUESTION_STANDING, .key = store->delegation.key},
            effects);
    }
}

static void connect(struct rendezvous_record_store *store, const struct rendezvous_effect *asked,
    struct record_effects *effects) {
    store->deadline = asked->deadline;
    store->refusal_patience = asked->refusal_patience;
    store->attempts = 1;
    store->was_heard = false;
    backoff_init_within(&store->backoff, random_next(&store->random), store->refusal_patience);
    open_lanes(store, (struct duration){0}, effects);
}

/* The record. */

/* The first question of a connection begins the record where there is none, because GET would wait
 * for one. */
static void ask_record(struct rendezvous_record_store *store, struct record_effects *effects) {
    enum record_question_kind kind =
        store->record.is_begun ? RECORD_QUESTION_RECORD : RECORD_QUESTION_BEGINNING;
    store->record.is_begun = true;
    record_store_ask(store, kind, 0, effects);
}

static void ask_write(struct rendezvous_record_store *store, const struct rendezvous_state *state,
    bool is_quiet, struct record_effects *effects) {
    store->record.is_quiet = is_quiet;
    bytes_clear(&store->record.writing);
    if (rendezvous_state_write_text(state, &store->record.writing) != FAILURE_NONE) {
        record_store_break_down(store,
            "the record cannot be written: too many nodes, or an address that is no UTF-8",
            effects);
        return;
    }
    record_store_send(store,
        (struct record_question){.kind = RECORD_QUESTION_WRITE,
            .expected = bytes_slice(&store->record.token),
            .value = bytes_slice(&store->record.writing)},
        effects);
}

/* Nodes. */

static void show_presence(struct rendezvous_record_store *store, struct record_effects *effects) {
    if (store->presence.is_served && store->presence.key != NULL) {
        record_store_send(store,
            (struct record_question){.kind = RECORD_QUESTION_PRESENCE,
                .key = store->presence.key,
                .value = slice_from_string(store->presence.value)},
            effects);
    }
}

static char *presence_value(const struct rendezvous_effect *asked) {
    struct text value = {0};
    if (asked->present.wish != NULL) {
        delegation_wish_write(asked->present.wish, &value);
    } else {
        text_append(&value, asked->present.has_finished ? RENDEZVOUS_PRESENCE_FINISHED
                                                        : RENDEZVOUS_PRESENCE_RUNNING);
    }
    return text_take(&value);
}

/* Nothing comes any more in the queue of a former name: the host deletes it with the presence. */
static void forget_standing(struct rendezvous_record_store *store) {
    free(store->delegation.key);
    store->delegation.key = NULL;
    store->delegation.is_watched = false;
    for (size_t i = 0; i < store->pending_count; i++) {
        if (store->pending[i].kind == RECORD_QUESTION_STANDING) {
            store->pending[i] = store->pending[--store->pending_count];
            return; /* one is watched at most */
        }
    }
}

/* The host of the store knows of the node from its presence, and answers it in its queue. */
static void await_standing(struct rendezvous_record_store *store,
    const struct rendezvous_effect *asked, struct record_effects *effects) {
    struct text key = {0};
    bool is_same = node_identity_equals(&store->delegation.identity, &asked->present.identity);
    store->delegation.is_taken = asked->present.wish != NULL;
    if ((!store->delegation.is_taken && !store->follows) || !is_same) {
        forget_standing(store);
    }
    if ((store->delegation.is_taken || store->follows) && store->delegation.key == NULL) {
        rendezvous_key_write_standing(store->run_id, &asked->present.identity, &key);
        store->delegation.key = text_take(&key);
        store->delegation.identity = asked->present.identity;
        record_store_watch_standing(store, effects);
    }
}

static void announce_presence(struct rendezvous_record_store *store,
    const struct rendezvous_effect *asked, struct record_effects *effects) {
    struct text key = {0};
    char *old = store->presence.key;
    rendezvous_key_write_presence(store->run_id, &asked->present.identity, &key);
    if (old != NULL && !text_equals(old, text_string(&key))) {
        record_store_send(
            store, (struct record_question){.kind = RECORD_QUESTION_DELETE, .key = old}, effects);
    }
    free(old);
    free(store->presence.value);
    store->presence.key = text_take(&key);
    store->presence.value = presence_value(asked);
    show_presence(store, effects);
    await_standing(store, asked, effects);
}

static void ask_roll(struct rendezvous_record_store *store, enum record_question_kind kind,
    const struct rendezvous_effect *asked, struct record_effects *effects) {
    record_store_send(store,
        (struct record_question){
            .kind = kind, .number = asked->roll.round, .node = asked->roll.number},
        effects);
}

/* Requests of the machine. */

static void ask_when_up(struct rendezvous_record_store *store,
    const struct rendezvous_effect *asked, struct record_effects *effects) {
    switch (asked->kind) {
    case RENDEZVOUS_EFFECT_PRESENT:
        announce_presence(store, asked, effects);
        break;
    case RENDEZVOUS_EFFECT_BEAT:
        show_presence(store, effects);
        record_store_ask(store, RECORD_QUESTION_CHANGE_COUNT, 0, effects);
        break;
    case RENDEZVOUS_EFFECT_FETCH: /* the count is asked first, so that no change is missed */
        record_store_ask(store, RECORD_QUESTION_CHANGE_COUNT, 0, effects);
        ask_record(store, effects);
        break;
    case RENDEZVOUS_EFFECT_WRITE:
        ask_write(store, asked->write.state, asked->write.is_quiet, effects);
        break;
    case RENDEZVOUS_EFFECT_TELL_WATCHERS:
        record_store_ask(store, RECORD_QUESTION_NEW_CHANGE, 0, effects);
        break;
    case RENDEZVOUS_EFFECT_COUNT_FINISHED:
        record_store_ask(store, RECORD_QUESTION_FINISHED_COUNT, asked->round, effects);
        break;
    case RENDEZVOUS_EFFECT_CALL_ROLL:
        ask_roll(store, RECORD_QUESTION_ROLL, asked, effects);
        break;
    case RENDEZVOUS_EFFECT_ANSWER_ROLL:
        ask_roll(store, RECORD_QUESTION_ROLL_ANSWER, asked, effects);
        break;
    case RENDEZVOUS_EFFECT_CONNECT:
    case RENDEZVOUS_EFFECT_WARM:
    case RENDEZVOUS_EFFECT_TELL_STANDINGS: /* for those who serve it */
    case RENDEZVOUS_EFFECT_CUT_OFF:
    case RENDEZVOUS_EFFECT_ARM_TIMER:
    case RENDEZVOUS_EFFECT_WORLD:
    case RENDEZVOUS_EFFECT_RELEASED:
    case RENDEZVOUS_EFFECT_ROUND_OVER:
    case RENDEZVOUS_EFFECT_STORE_AWAITED:
    case RENDEZVOUS_EFFECT_CLOSED:
    case RENDEZVOUS_EFFECT_FAILED:
    case RENDEZVOUS_EFFECT_FAILURE_STANDS:
    case RENDEZVOUS_EFFECT_SETTLED:
    case RENDEZVOUS_EFFECT_KIND_COUNT:
        break; /* not for the store */
    }
}

void rendezvous_record_store_ask(struct rendezvous_record_store *store,
    const struct rendezvous_effect *asked, struct record_effects *effects) {
    if (asked->kind == RENDEZVOUS_EFFECT_CONNECT) {
        connect(store, asked, effects);
    } else if (store->phase == RECORD_PHASE_UP) {
        ask_when_up(store, asked, effects);
    }
}

void record_store_clear_next(
    struct rendezvous_record_store *store, struct record_effects *effects) {
    if (store->clearing.begun < store->clearing.keys.count) {
        const char *key = store->clearing.keys.items[store->clearing.begun++];
        record_store_send(
            store, (struct record_question){.kind = RECORD_QUESTION_CLEAR, .key = key}, effects);
    } else {
        text_list_clear(&store->clearing.keys);
        store->clearing.begun = 0;
    }
}

void rendezvous_record_store_delete(
    struct rendezvous_record_store *store, const char *key, struct record_effects *effects) {
    if (store->phase == RECORD_PHASE_UP && !store->is_file) {
        text_list_add(&store->clearing.keys, key);
        if (store->clearing.begun == 0) {
            record_store_clear_next(store, effects);
        }
    }
}

void rendezvous_record_store_cancel_waits(
    struct rendezvous_record_store *store, struct record_effects *effects) {
    size_t kept = 0;
    for (size_t i = 0; i < store->pending_count; i++) {
        if (lane_of(store, store->pending[i].kind) != RENDEZVOUS_LANE_WAITER) {
            store->pending[kept++] = store->pending[i];
        }
    }
    store->pending_count = kept;
    if (store->phase == RECORD_PHASE_UP) {
        (void)record_effects_add(effects, RECORD_EFFECT_RENEW_WAITER);
    }
}

void rendezvous_record_store_disconnect(
    struct rendezvous_record_store *store, struct record_effects *effects) {
    drop(store, effects);
}

/* Answers of the performer. */

/* Removes and returns the pending request with this tag; false when it was dropped meanwhile. */
static bool take_pending(
    struct rendezvous_record_store *store, uint64_t tag, struct record_pending *out_pending) {
    for (size_t i = 0; i < store->pending_count; i++) {
        if (store->pending[i].tag == tag) {
            *out_pending = store->pending[i];
            store->pending[i] = store->pending[--store->pending_count];
            return true;
        }
    }
    return false;
}

void rendezvous_record_store_take_opened(
    struct rendezvous_record_store *store, struct record_effects *effects) {
    if (store->phase == RECORD_PHASE_OPENING) {
        store->phase = RECORD_PHASE_GREETING;
        record_answer_greet(store, effects);
    }
}

void rendezvous_record_store_take_unopened(struct rendezvous_record_store *store,
    enum failure_code code, const char *message, bool was_heard, struct record_effects *effects) {
    store->was_heard = store->was_heard || was_heard;
    if (store->phase == RECORD_PHASE_OPENING && code == FAILURE_TIMEOUT) {
        lose(store, code, message, effects);
    } else {
        rendezvous_record_store_take_end(store, code, message, effects);
    }
}

void rendezvous_record_store_take_end(struct rendezvous_record_store *store, enum failure_code code,
    const char *message, struct record_effects *effects) {
    if (store->phase != RECORD_PHASE_DROPPED) {
        end(store, code, message, effects);
    }
}

void rendezvous_record_store_take_reply(struct rendezvous_record_store *store, uint64_t tag,
    const struct store_reply *reply, struct record_effects *effects) {
    struct record_pending pending;
    if (take_pending(store, tag, &pending)) {
        store->changes.known_then = pending.known_changes;
        record_answer_take(store, pending.kind, reply, effects);
    }
}

void rendezvous_record_store_take_failure(struct rendezvous_record_store *store, uint64_t tag,
    enum failure_code code, const char *message, struct record_effects *effects) {
    struct record_pending pending;
    if (!take_pending(store, tag, &pending) || code == FAILURE_CANCELLED) {
        return;
    }
    if (code == FAILURE_LIMIT) {
        record_answer_take_excess(store, pending.kind, message, effects);
    } else {
        end(store, code, message, effects);
    }
}

/* Creation and end. */

struct rendezvous_record_store *rendezvous_record_store_new(
    const struct rendezvous_record_store_settings *settings) {
    struct rendezvous_record_store *store = memory_allocate(sizeof *store);
    store->run_id = memory_duplicate_string(settings->run_id);
    store->sizes = text_format("%d:%d", settings->minimum_nodes, settings->maximum_nodes);
    store->answer_timeout = settings->answer_timeout;
    store->is_file = settings->is_file;
    store->delegates = settings->delegates;
    store->follows = settings->follows;
    random_init(&store->random, settings->seed);
    return store;
}

void rendezvous_record_store_free(struct rendezvous_record_store *store) {
    if (store == NULL) {
        return;
    }
    forget_connection(store);
    bytes_clear(&store->record.token);
    bytes_clear(&store->record.writing);
    free(store->pending);
    free(store->sizes);
    free(store->run_id);
    free(store);
}

bool rendezvous_record_store_is_up(const struct rendezvous_record_store *store) {
    return store->phase == RECORD_PHASE_UP;
}

bool rendezvous_record_store_is_agents(const struct rendezvous_record_store *store) {
    return store->presence.is_served;
}
