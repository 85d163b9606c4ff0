/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/rendezvous/record_answer.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/text.h"
#include "core/rendezvous/rendezvous_key.h"
#include "wire/rendezvous/delegation_text.h"
#include "wire/rendezvous/handover_word.h"
#include "wire/rendezvous/protocol_version.h"
#include "wire/rendezvous/rendezvous_record_store_state.h"
#include "wire/rendezvous/rendezvous_state_pickle.h"

/* The keys of older changes are deleted: a node that reads the counter now never waits for them. */
#define CHANGES_KEPT 256
/* More changes than any job makes. The number after it is still valid. */
#define CHANGES_MAXIMUM (INT64_MAX / 2)
/* The longest settings text that is shown: two numbers. */
#define SETTINGS_SHOWN 32

static void tell_kind(enum rendezvous_event_kind kind, struct record_effects *effects) {
    record_effects_tell(effects, &(struct rendezvous_event){.kind = kind});
}

/* Reports a value in the store that no node of Muster or torchrun has written. */
static void refuse(struct rendezvous_record_store *store, const char *what,
    void (*write_key)(const char *run_id, struct text *out), const char *why,
    struct record_effects *effects) {
    struct text key = {0};
    write_key(store->run_id, &key);
    char *reason = text_format("the %s of job '%s' in the store (key %s) cannot be used: %s; it "
                               "is left as it is. Give this job another --rdzv-id, or remove it",
        what, store->run_id, text_string(&key) + 1, why);
    record_store_break_down(store, reason, effects);
    free(reason);
    text_clear(&key);
}

static void refuse_record(
    struct rendezvous_record_store *store, const char *why, struct record_effects *effects) {
    refuse(store, "record", rendezvous_key_write_record, why, effects);
}

/* Connecting: what must be known before the record is read. */

static void ask_settings(struct rendezvous_record_store *store, struct record_effects *effects) {
    record_store_send(store,
        (struct record_question){
            .kind = RECORD_QUESTION_SETTINGS, .value = slice_from_string(store->sizes)},
        effects);
}

static void send_version(struct rendezvous_record_store *store, enum record_question_kind kind,
    const char *key_or_null, struct record_effects *effects) {
    struct protocol_version own = protocol_version_own();
    struct text text = {0};
    protocol_version_write(&own, &text);
    record_store_send(store,
        (struct record_question){
            .kind = kind, .key = key_or_null, .value = slice_from_string(text_string(&text))},
        effects);
    text_clear(&text);
}

static void take_refused(struct rendezvous_record_store *store, const struct store_reply *reply,
    struct record_effects *effects) {
    (void)reply;
    char *reason = store->refusal;
    store->refusal = NULL;
    record_store_break_down(store, reason, effects);
    free(reason);
}

/* The agent that hosts the store is told of this one: its server ties the key to this connection,
 * which ends when the server has answered the question after it. */
static void be_refused(struct rendezvous_record_store *store, struct record_effects *effects) {
    struct text key = {0};
    if (!store->presence.is_served) {
        take_refused(store, NULL, effects);
        return;
    }
    rendezvous_key_write_refused(store->run_id, (uint32_t)random_next(&store->random), &key);
    send_version(store, RECORD_QUESTION_PRESENCE, text_string(&key), effects);
    record_store_ask(store, RECORD_QUESTION_REFUSED, 0, effects);
    text_clear(&key);
}

/* Two questions are asked beside each other, on two lanes, so that the second takes no time. A host
 * that writes for others serves presence, so that this node asks for both at once. */
void record_answer_greet(struct rendezvous_record_store *store, struct record_effects *effects) {
    store->greetings = 2;
    record_store_ask(store,
        store->delegates ? RECORD_QUESTION_DELEGATION : RECORD_QUESTION_PRESENCE_SERVED, 0,
        effects);
    send_version(store, RECORD_QUESTION_PROTOCOL, NULL, effects);
}

static void go_on_greeting(struct rendezvous_record_store *store, struct record_effects *effects) {
    if (--store->greetings > 0) {
        return;
    }
    if (store->refusal != NULL) {
        be_refused(store, effects);
    } else {
        ask_settings(store, effects);
    }
}

static void take_presence_served(struct rendezvous_record_store *store,
    const struct store_reply *reply, struct record_effects *effects) {
    store->presence.is_served = reply->byte == STORE_READY;
    go_on_greeting(store, effects);
}

static void take_delegation(struct rendezvous_record_store *store, const struct store_reply *reply,
    struct record_effects *effects) {
    store->delegation.is_offered = reply->byte == STORE_READY;
    if (store->delegation.is_offered) {
        store->presence.is_served = true;
        go_on_greeting(store, effects);
    } else {
        record_store_ask(store, RECORD_QUESTION_PRESENCE_SERVED, 0, effects);
    }
}

static char *explain_refusal(
    const struct rendezvous_record_store *store, const struct protocol_version *theirs) {
    struct protocol_version own = protocol_version_own();
    struct text reason = {0};
    text_append_format(&reason, "job '%s' at this store was begun by ", store->run_id);
    protocol_version_describe(theirs, &reason);
    text_append(&reason, ", and this is ");
    protocol_version_describe(&own, &reason);
    text_append(&reason, "; use one version of Muster on all nodes of a job");
    return text_take(&reason);
}

static void take_protocol(struct rendezvous_record_store *store, const struct store_reply *reply,
    struct record_effects *effects) {
    struct protocol_version theirs;
    if (protocol_version_read(reply->blob, &theirs) != FAILURE_NONE) {
        refuse(store, "protocol's version", rendezvous_key_write_protocol,
            "it is not a number and a program's name", effects);
        return;
    }
    if (theirs.number != protocol_version_own().number) {
        store->refusal = explain_refusal(store, &theirs);
    }
    go_on_greeting(store, effects);
}

static bool is_showable(struct slice sizes) {
    for (size_t i = 0; i < sizes.length; i++) {
        bool is_digit = sizes.data[i] >= '0' && sizes.data[i] <= '9';
        if (!is_digit && sizes.data[i] != ':') {
            return false;
        }
    }
    return sizes.length > 0 && sizes.length <= SETTINGS_SHOWN;
}

static void refuse_settings(
    struct rendezvous_record_store *store, struct slice theirs, struct record_effects *effects) {
    bool is_shown = is_showable(theirs);
    char *reason = text_format(
        "a job '%s' with other settings uses this store: it has --nnodes %.*s, this node was "
        "given %s; give all nodes of a job the same --nnodes, or this job another --rdzv-id",
        store->run_id, is_shown ? (int)theirs.length : SETTINGS_SHOWN,
        is_shown ? (const char *)theirs.data : "something else", store->sizes);
    record_store_break_down(store, reason, effects);
    free(reason);
}

/* The record itself is not looked at yet: a node for which the host writes never needs it. */
static void take_settings(struct rendezvous_record_store *store, const struct store_reply *reply,
    struct record_effects *effects) {
    if (!slice_equals(reply->blob, slice_from_string(store->sizes))) {
        refuse_settings(store, reply->blob, effects);
        return;
    }
    store->phase = RECORD_PHASE_UP;
    record_effects_tell(effects, &(struct rendezvous_event){.kind = RENDEZVOUS_EVENT_CONNECTED,
                                     .connected = {.has_presence = store->presence.is_served,
                                         .offers_delegation = store->delegation.is_offered}});
}

/* The record. */

static void keep_token(struct rendezvous_record_store *store, struct slice text) {
    bytes_clear(&store->record.token);
    (void)!bytes_append(
        &store->record.token, text.data, text.length); /* the buffer has no ceiling */
}

/* Reads the record and keeps it as the one seen last. Returns false when it makes no sense. */
static bool read_record(struct rendezvous_record_store *store, struct slice text,
    bool *out_is_absent, struct rendezvous_state *out_state, struct record_effects *effects) {
    struct text why = {0};
    enum failure_code code = FAILURE_NONE;
    *out_is_absent = text.length == 0;
    if (text.length > 0) {
        code = rendezvous_state_read_text(text, out_is_absent, out_state, &why);
    }
    if (code == FAILURE_NONE) {
        keep_token(store, text);
    } else {
        refuse_record(store, text_string(&why), effects);
    }
    text_clear(&why);
    return code == FAILURE_NONE;
}

static void take_record(struct rendezvous_record_store *store, const struct store_reply *reply,
    struct record_effects *effects) {
    struct rendezvous_state state = {0};
    bool is_absent;
    if (read_record(store, reply->blob, &is_absent, &state, effects)) {
        record_effects_tell(effects, &(struct rendezvous_event){.kind = RENDEZVOUS_EVENT_RECORD,
                                         .has_traces = store->changes.known > 0,
                                         .state = is_absent ? NULL : &state});
    }
    rendezvous_state_clear(&state);
}

static void tell_won(struct record_effects *effects) {
    record_effects_tell(effects,
        &(struct rendezvous_event){.kind = RENDEZVOUS_EVENT_WRITTEN, .written = {.has_won = true}});
}

static void take_lost_write(
    struct rendezvous_record_store *store, struct slice text, struct record_effects *effects) {
    struct rendezvous_state state = {0};
    bool is_absent;
    if (read_record(store, text, &is_absent, &state, effects)) {
        record_effects_tell(effects, &(struct rendezvous_event){.kind = RENDEZVOUS_EVENT_WRITTEN,
                                         .has_traces = store->changes.known > 0,
                                         .written = {.state = is_absent ? NULL : &state}});
    }
    rendezvous_state_clear(&state);
}

/* A write is answered only when the watchers have been told of it, because a node may leave as soon
 * as its last write is answered. */
static void take_write(struct rendezvous_record_store *store, const struct store_reply *reply,
    struct record_effects *effects) {
    if (!slice_equals(reply->blob, bytes_slice(&store->record.writing))) {
        /* Where there is no value, a TCPStore repeats the expected one and writes nothing. */
        bool is_deleted = slice_equals(reply->blob, bytes_slice(&store->record.token));
        take_lost_write(store, is_deleted ? (struct slice){0} : reply->blob, effects);
        return;
    }
    bytes_clear(&store->record.token);
    store->record.token = store->record.writing;
    store->record.writing = (struct bytes){0};
    if (store->record.is_quiet) {
        tell_won(effects);
    } else {
        record_store_ask(store, RECORD_QUESTION_NEW_WRITE, 0, effects);
    }
}

/* Watching for changes. */

static void await_next(struct rendezvous_record_store *store, struct record_effects *effects) {
    if (store->changes.awaited == 0) {
        store->changes.awaited = store->changes.known + 1;
        record_store_ask(store, RECORD_QUESTION_NEXT_CHANGE, store->changes.awaited, effects);
    }
}

/* Checks that the counter is plausible: at least `minimum`, and below the maximum. */
static bool is_count(struct rendezvous_record_store *store, int64_t number, int64_t minimum,
    struct record_effects *effects) {
    if (number >= minimum && number <= CHANGES_MAXIMUM) {
        return true;
    }
    char *why = text_format("it is %" PRId64 ", and counts up from 0", number);
    refuse(store, "counter of changes", rendezvous_key_write_changes, why, effects);
    free(why);
    return false;
}

/* Somebody has deleted the counter. The watchers wait for numbers above those counted so far, so
 * the counter goes on there. Whatever was told meanwhile was told to nobody. */
static void count_on(
    struct rendezvous_record_store *store, int64_t count, struct record_effects *effects) {
    record_store_ask(store, RECORD_QUESTION_CHANGE_COUNT, store->changes.known - count, effects);
    tell_kind(RENDEZVOUS_EVENT_CHANGED, effects);
}

/* When the change that this node waits for is counted but not told, the node that counted it has
 * died in between. This node then tells the change itself, which also ends its own wait. A count
 * that was asked before the watcher heard of a change may lack that change, and says nothing of a
 * deleted counter: to count on would number a change that nobody tells, for which others wait. */
static void take_change_count(struct rendezvous_record_store *store,
    const struct store_reply *reply, struct record_effects *effects) {
    if (!is_count(store, reply->integer, 0, effects)) {
        return;
    }
    if (store->delegation.is_taken) {
        return; /* the store answers, which is all that a node that delegates wants to know */
    }
    if (reply->integer < store->changes.known_then) {
        count_on(store, reply->integer, effects);
        return;
    }
    if (reply->integer > store->changes.known) {
        store->changes.known = reply->integer;
    }
    if (store->changes.awaited != 0 && store->changes.awaited <= store->changes.known) {
        record_store_ask(store, RECORD_QUESTION_TELL_CHANGE, store->changes.awaited, effects);
    }
    await_next(store, effects);
}

static void take_next_change(struct rendezvous_record_store *store, const struct store_reply *reply,
    struct record_effects *effects) {
    (void)reply;
    bool is_own = store->changes.awaited == store->changes.own;
    store->changes.known = store->changes.awaited;
    store->changes.awaited = 0;
    if (is_own) {
        await_next(store, effects);
    } else {
        tell_kind(RENDEZVOUS_EVENT_CHANGED, effects);
    }
}

/* Telling of changes. */

static void tell_watchers(struct rendezvous_record_store *store, int64_t number,
    enum record_question_kind kind, struct record_effects *effects) {
    if (!is_count(store, number, 1, effects)) {
        return;
    }
    store->changes.own = number;
    record_store_ask(store, kind, number, effects);
    if (number > CHANGES_KEPT) {
        record_store_ask(store, RECORD_QUESTION_FORGET_CHANGE, number - CHANGES_KEPT, effects);
    }
}

static void take_new_change(struct rendezvous_record_store *store, const struct store_reply *reply,
    struct record_effects *effects) {
    tell_watchers(store, reply->integer, RECORD_QUESTION_TELL_CHANGE, effects);
}

static void take_new_write(struct rendezvous_record_store *store, const struct store_reply *reply,
    struct record_effects *effects) {
    tell_watchers(store, reply->integer, RECORD_QUESTION_TELL_WRITE, effects);
}

static void take_write_told(struct rendezvous_record_store *store, const struct store_reply *reply,
    struct record_effects *effects) {
    (void)store;
    (void)reply;
    tell_won(effects);
}

/* Nodes. */

static void take_finished_count(struct rendezvous_record_store *store,
    const struct store_reply *reply, struct record_effects *effects) {
    (void)store;
    record_effects_tell(effects, &(struct rendezvous_event){.kind = RENDEZVOUS_EVENT_FINISHED_COUNT,
                                     .finished_count = reply->integer});
}

static void take_roll(struct rendezvous_record_store *store, const struct store_reply *reply,
    struct record_effects *effects) {
    (void)store;
    (void)reply;
    tell_kind(RENDEZVOUS_EVENT_ROLL_ANSWERED, effects);
}

static void refuse_standing(struct rendezvous_record_store *store, struct record_effects *effects) {
    char *reason = text_format(
        "the host of the store of job '%s' has told this node what makes no sense%s", store->run_id,
        store->delegation.is_taken ? "; give all nodes --rdzv-conf delegation=false" : "");
    record_store_break_down(store, reason, effects);
    free(reason);
}

static void take_standing(
    struct rendezvous_record_store *store, struct slice text, struct record_effects *effects) {
    struct delegation_standing standing = {0};
    if (delegation_standing_read(text, &standing) != FAILURE_NONE) {
        refuse_standing(store, effects);
        return;
    }
    for (size_t i = 0; i < standing.state.count; i++) {
        standing.state.nodes[i].identity = store->delegation.identity;
    }
    if (!standing.is_withdrawn || store->follows) {
        record_store_watch_standing(store, effects);
    }
    record_effects_tell(effects, &(struct rendezvous_event){.kind = RENDEZVOUS_EVENT_STANDING,
                                     .standing = {.state = &standing.state,
                                         .answers = standing.answers,
                                         .ranks = standing.ranks,
                                         .meeting = standing.meeting,
                                         .is_held = standing.is_held,
                                         .is_withdrawn = standing.is_withdrawn}});
    delegation_standing_clear(&standing);
}

/* Of a host that leaves, or how this node stands. */
static void take_told(struct rendezvous_record_store *store, const struct store_reply *reply,
    struct record_effects *effects) {
    enum handover_word word;
    store->delegation.is_watched = false;
    if (store->delegation.key == NULL) {
        return;
    }
    if (store->follows && handover_word_read(reply->pop.front, &word)) {
        record_store_watch_standing(store, effects);
        record_effects_tell(
            effects, &(struct rendezvous_event){.kind = RENDEZVOUS_EVENT_HOST_LEAVES,
                         .is_successor = word == HANDOVER_NAMED});
    } else {
        take_standing(store, reply->pop.front, effects);
    }
}

static void take_cleared(struct rendezvous_record_store *store, const struct store_reply *reply,
    struct record_effects *effects) {
    (void)reply;
    record_store_clear_next(store, effects);
}

/* Dispatch. */

static void (*const takers[RECORD_QUESTION_KIND_COUNT])(struct rendezvous_record_store *store,
    const struct store_reply *reply, struct record_effects *effects) = {
    [RECORD_QUESTION_PRESENCE_SERVED] = take_presence_served,
    [RECORD_QUESTION_PROTOCOL] = take_protocol,
    [RECORD_QUESTION_REFUSED] = take_refused,
    [RECORD_QUESTION_DELEGATION] = take_delegation,
    [RECORD_QUESTION_SETTINGS] = take_settings,
    [RECORD_QUESTION_BEGINNING] = take_record,
    [RECORD_QUESTION_RECORD] = take_record,
    [RECORD_QUESTION_WRITE] = take_write,
    [RECORD_QUESTION_CHANGE_COUNT] = take_change_count,
    [RECORD_QUESTION_NEW_CHANGE] = take_new_change,
    [RECORD_QUESTION_NEW_WRITE] = take_new_write,
    [RECORD_QUESTION_TELL_WRITE] = take_write_told,
    [RECORD_QUESTION_NEXT_CHANGE] = take_next_change,
    [RECORD_QUESTION_STANDING] = take_told,
    [RECORD_QUESTION_FINISHED_COUNT] = take_finished_count,
    [RECORD_QUESTION_ROLL] = take_roll,
    [RECORD_QUESTION_CLEAR] = take_cleared,
};

/* Whether a reply of this kind is a valid answer to the question. */
static bool is_answer(enum record_question_kind kind, const struct store_reply *reply) {
    enum store_operation operation = record_question_operation(kind);
    return reply->kind == store_operation_reply_kind(operation) &&
           (operation != STORE_WAIT || reply->byte == STORE_STOP_WAITING);
}

void record_answer_take(struct rendezvous_record_store *store, enum record_question_kind kind,
    const struct store_reply *reply, struct record_effects *effects) {
    if (!is_answer(kind, reply)) {
        char *reason = text_format("the store gave no valid answer to %s",
            store_operation_name(record_question_operation(kind)));
        record_store_break_down(store, reason, effects);
        free(reason);
    } else if (takers[kind] != NULL) {
        takers[kind](store, reply, effects);
    }
}

void record_answer_take_excess(struct rendezvous_record_store *store,
    enum record_question_kind kind, const char *message, struct record_effects *effects) {
    if (kind == RECORD_QUESTION_BEGINNING || kind == RECORD_QUESTION_RECORD ||
        kind == RECORD_QUESTION_WRITE) {
        refuse_record(store, message, effects);
    } else {
        record_store_break_down(store, message, effects);
    }
}
