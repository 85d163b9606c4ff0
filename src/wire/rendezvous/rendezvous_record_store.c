/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/rendezvous/rendezvous_record_store.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/duration.h"
#include "base/memory.h"
#include "base/random.h"
#include "base/text.h"
#include "core/rendezvous/rendezvous_key.h"
#include "core/round/round_key.h"
#include "wire/rendezvous/delegation_text.h"
#include "wire/rendezvous/job_notes.h"
#include "wire/rendezvous/rendezvous_state_pickle.h"

/* Every question that a node asks the store about its job's record, as a store request: the record
 * itself, its changes, presence, rolls, and what must be known before. This module only spells
 * requests. rendezvous_record_store decides when to ask and what follows from an answer. */

enum record_question_kind {
    /* before the record is read */
    RECORD_QUESTION_PRESENCE_SERVED, /* does the server tie keys to connections? */
    RECORD_QUESTION_DELEGATION,      /* does it, and does the host write the record for others? */
    RECORD_QUESTION_PROTOCOL, /* sets `value` if there is none; the answer is the value in the store
                               */
    RECORD_QUESTION_REFUSED,  /* has the server heard that this node is refused? */
    RECORD_QUESTION_SETTINGS, /* as for the protocol */
    /* the record */
    RECORD_QUESTION_BEGINNING, /* if there is none, begins one as torchrun does, with a word for
                                  "none yet"; the answer is the value in the store */
    RECORD_QUESTION_RECORD,
    RECORD_QUESTION_WRITE, /* puts `value` in place of `expected`; the answer is the value in the
                              store */
    /* changes of the record */
    RECORD_QUESTION_CHANGE_COUNT,  /* adds `number` to the counter, mostly 0; the answer is it */
    RECORD_QUESTION_NEW_CHANGE,    /* adds one to the counter; the answer is the change's number */
    RECORD_QUESTION_NEW_WRITE,     /* the same for a change by this node's own write */
    RECORD_QUESTION_TELL_CHANGE,   /* tells the change `number` */
    RECORD_QUESTION_TELL_WRITE,    /* the same for a change by this node's own write */
    RECORD_QUESTION_FORGET_CHANGE, /* deletes the key of the change `number` */
    RECORD_QUESTION_NEXT_CHANGE,   /* waits for the change `number` */
    /* nodes */
    RECORD_QUESTION_PRESENCE,       /* sets `key` to `value` */
    RECORD_QUESTION_STANDING,       /* waits until the queue `key` has an item, and takes it */
    RECORD_QUESTION_FINISHED_COUNT, /* how many nodes are in the exit barrier of the round `number`
                                     */
    RECORD_QUESTION_ROLL,           /* waits for the nodes ranked 0 to `node` - 1 */
    RECORD_QUESTION_ROLL_ANSWER,    /* the answer of the node ranked `node` in the round `number` */
    RECORD_QUESTION_DELETE,         /* the `key` */
    RECORD_QUESTION_CLEAR,          /* the same, of an earlier round */
    RECORD_QUESTION_KIND_COUNT,
};

/* Everything is borrowed. Fields that the kind does not use are zero. */
struct record_question {
    enum record_question_kind kind;
    int64_t number;
    int node;
    const char *key;       /* complete, as it is sent */
    struct slice value;    /* without a NUL */
    struct slice expected; /* any bytes; empty: there must be no record yet */
};

enum record_phase {
    RECORD_PHASE_DROPPED,
    RECORD_PHASE_OPENING,
    RECORD_PHASE_GREETING, /* asks what must be known before the record is read */
    RECORD_PHASE_UP,
};

/* A request that is not answered yet. */
struct record_pending {
    uint64_t tag;
    enum record_question_kind kind;
    int64_t known_changes; /* when it was sent */
};

struct rendezvous_record_store {
    char *run_id;
    char *sizes; /* --nnodes, for other nodes to compare */
    struct duration answer_timeout;
    bool is_file;
    bool delegates;
    bool follows;

    enum record_phase phase;
    struct instant deadline; /* until when to try to connect */
    struct duration refusal_patience;
    int greetings;  /* of two questions asked beside each other, how many are not answered */
    char *refusal;  /* why this node may not take part; NULL: it may */
    int attempts;   /* made so far */
    bool was_heard; /* the store has answered in one of them */
    struct random random;
    struct backoff backoff; /* of the attempts until the deadline */
    struct record_pending *pending;
    size_t pending_count;
    size_t pending_capacity;
    uint64_t last_tag;

    struct {
        /* Text of the record seen last; empty: the key is missing or empty, or was not read yet. */
        struct bytes token;
        struct bytes writing;
        bool is_begun; /* this connection has asked for it, and begun one if there was none */
        bool is_quiet; /* the write under way does not tell the watchers */
    } record;
    struct {
        int64_t known;      /* of the changes counted so far, as read or as told by the watcher */
        int64_t known_then; /* when the question was sent that is answered now */
        int64_t awaited;    /* the number of the change waited for; 0: none */
        int64_t own;        /* the number of the last change that this node made itself */
    } changes;
    struct {
        bool is_served;
        char *key; /* NULL: this node has not announced its presence */
        char *value;
    } presence;
    struct {
        bool is_offered;               /* by the host of the store */
        bool is_taken;                 /* this node delegates */
        struct node_identity identity; /* of this node, for … */
        char *key;                     /* … its queue; NULL: nothing is told it, and … */
        bool is_watched;               /* … the watcher waits for an item of it */
    } delegation;
    struct {
        struct text_list keys; /* of earlier rounds, to be deleted … */
        size_t begun;          /* … so many of them asked for */
    } clearing;
};

static void record_store_break_down(
    struct rendezvous_record_store *store, const char *reason, struct record_effects *effects);
static void record_store_send(struct rendezvous_record_store *store,
    struct record_question question, struct record_effects *effects);
static void record_store_ask(struct rendezvous_record_store *store, enum record_question_kind kind,
    int64_t number, struct record_effects *effects);
static void record_store_watch_standing(
    struct rendezvous_record_store *store, struct record_effects *effects);
static void record_store_clear_next(
    struct rendezvous_record_store *store, struct record_effects *effects);

/* The state of a rendezvous_record_store, shared by its two parts: rendezvous_record_store takes
 * requests, record_answer takes the store's replies. No other module may read or write it. */

/* Record request. */

static const enum store_operation operations[RECORD_QUESTION_KIND_COUNT] = {
    [RECORD_QUESTION_PRESENCE_SERVED] = STORE_CHECK,
    [RECORD_QUESTION_PROTOCOL] = STORE_COMPARE_SET,
    [RECORD_QUESTION_REFUSED] = STORE_CHECK,
    [RECORD_QUESTION_DELEGATION] = STORE_CHECK,
    [RECORD_QUESTION_SETTINGS] = STORE_COMPARE_SET,
    [RECORD_QUESTION_BEGINNING] = STORE_COMPARE_SET,
    [RECORD_QUESTION_RECORD] = STORE_GET,
    [RECORD_QUESTION_WRITE] = STORE_COMPARE_SET,
    [RECORD_QUESTION_CHANGE_COUNT] = STORE_ADD,
    [RECORD_QUESTION_NEW_CHANGE] = STORE_ADD,
    [RECORD_QUESTION_NEW_WRITE] = STORE_ADD,
    [RECORD_QUESTION_TELL_CHANGE] = STORE_SET,
    [RECORD_QUESTION_TELL_WRITE] = STORE_SET,
    [RECORD_QUESTION_FORGET_CHANGE] = STORE_DELETE,
    [RECORD_QUESTION_NEXT_CHANGE] = STORE_WAIT,
    [RECORD_QUESTION_PRESENCE] = STORE_SET,
    [RECORD_QUESTION_STANDING] = STORE_QUEUE_POP,
    [RECORD_QUESTION_FINISHED_COUNT] = STORE_ADD,
    [RECORD_QUESTION_ROLL] = STORE_WAIT,
    [RECORD_QUESTION_ROLL_ANSWER] = STORE_SET,
    [RECORD_QUESTION_DELETE] = STORE_DELETE,
    [RECORD_QUESTION_CLEAR] = STORE_DELETE,
};

/* The store operation that this kind of question uses. */
static enum store_operation record_question_operation(enum record_question_kind kind) {
    return operations[kind];
}

/* Whether the answer comes when something has happened. */
static bool record_question_waits(enum record_question_kind kind) {
    return operations[kind] == STORE_WAIT || kind == RECORD_QUESTION_STANDING;
}

static void record_request_write_key(
    const struct record_question *question, const char *run_id, struct text *out) {
    switch (question->kind) {
    case RECORD_QUESTION_PRESENCE_SERVED:
    case RECORD_QUESTION_REFUSED:
        rendezvous_key_write_presence_served(run_id, out);
        break;
    case RECORD_QUESTION_PROTOCOL:
        rendezvous_key_write_protocol(run_id, out);
        break;
    case RECORD_QUESTION_SETTINGS:
        rendezvous_key_write_settings(run_id, out);
        break;
    case RECORD_QUESTION_BEGINNING:
    case RECORD_QUESTION_RECORD:
    case RECORD_QUESTION_WRITE:
        rendezvous_key_write_record(run_id, out);
        break;
    case RECORD_QUESTION_CHANGE_COUNT:
    case RECORD_QUESTION_NEW_CHANGE:
    case RECORD_QUESTION_NEW_WRITE:
        rendezvous_key_write_changes(run_id, out);
        break;
    case RECORD_QUESTION_TELL_CHANGE:
    case RECORD_QUESTION_TELL_WRITE:
    case RECORD_QUESTION_FORGET_CHANGE:
    case RECORD_QUESTION_NEXT_CHANGE:
        rendezvous_key_write_changed(run_id, question->number, out);
        break;
    case RECORD_QUESTION_ROLL_ANSWER:
        rendezvous_key_write_roll(run_id, question->number, question->node, out);
        break;
    case RECORD_QUESTION_PRESENCE:
    case RECORD_QUESTION_STANDING:
    case RECORD_QUESTION_DELETE:
    case RECORD_QUESTION_CLEAR:
        text_append(out, question->key);
        break;
    case RECORD_QUESTION_DELEGATION:
    case RECORD_QUESTION_FINISHED_COUNT:
    case RECORD_QUESTION_ROLL:
    case RECORD_QUESTION_KIND_COUNT:
        break; /* add_keys adds its keys */
    }
}

static void add_keys(
    const struct record_question *question, const char *run_id, struct text_list *out) {
    struct text key = {0};
    if (question->kind == RECORD_QUESTION_FINISHED_COUNT) {
        struct round_key members = {.kind = ROUND_KEY_NUM_MEMBERS, .round = question->number};
        round_key_list(&members, run_id, out);
    } else if (question->kind == RECORD_QUESTION_DELEGATION) {
        rendezvous_key_write_presence_served(run_id, &key);
        text_list_add_taken(out, text_take(&key));
        rendezvous_key_write_delegation(run_id, &key);
        text_list_add_taken(out, text_take(&key));
    } else if (question->kind == RECORD_QUESTION_ROLL) {
        for (int rank = 0; rank < question->node; rank++) {
            rendezvous_key_write_roll(run_id, question->number, rank, &key);
            text_list_add_taken(out, text_take(&key));
        }
    } else {
        record_request_write_key(question, run_id, &key);
        text_list_add_taken(out, text_take(&key));
    }
}

static void add_value(struct slice value, struct text_list *out) {
    struct text text = {0};
    text_append_bytes(&text, (const char *)value.data, value.length);
    text_list_add_taken(out, text_take(&text));
}

/* Builds the request. The caller clears it with owned_request_clear after it has been sent. */
static void record_request_build(
    const struct record_question *question, const char *run_id, struct owned_request *out_request) {
    struct owned_request request = {0};
    struct slice absent = slice_from_string(RENDEZVOUS_STATE_ABSENT);
    enum store_operation operation = record_question_operation(question->kind);
    bool is_new =
        question->kind == RECORD_QUESTION_NEW_CHANGE || question->kind == RECORD_QUESTION_NEW_WRITE;
    bool is_count = question->kind == RECORD_QUESTION_CHANGE_COUNT;
    add_keys(question, run_id, &request.keys);
    if (operation == STORE_SET || operation == STORE_COMPARE_SET) {
        bool is_beginning = question->kind == RECORD_QUESTION_BEGINNING;
        add_value(is_beginning ? absent : question->value, &request.values);
    }
    if (question->kind == RECORD_QUESTION_WRITE) {
        (void)!bytes_append(&request.expected, question->expected.data,
            question->expected.length); /* the buffer has no ceiling */
    }
    owned_request_finish(&request, operation, is_new ? 1 : is_count ? question->number : 0);
    *out_request = request;
}

/* Record effects. */

static void clear(struct record_effect *effect) {
    if (effect->kind == RECORD_EFFECT_SEND) {
        owned_request_clear(&effect->send.own);
    }
    if (effect->state != NULL) {
        rendezvous_state_clear(effect->state);
    }
    free(effect->state);
    free(effect->reason);
}

void record_effects_clear(struct record_effects *effects) {
    for (size_t i = 0; i < effects->count; i++) {
        clear(&effects->items[i]);
    }
    free(effects->items);
    *effects = (struct record_effects){0};
}

/* Returns a zeroed effect with its kind set. The pointer is valid until the next effect is
 * added. */
static struct record_effect *record_effects_add(
    struct record_effects *effects, enum record_effect_kind kind) {
    effects->items = memory_reserve(
        effects->items, &effects->capacity, effects->count + 1, sizeof *effects->items);
    struct record_effect *effect = &effects->items[effects->count++];
    *effect = (struct record_effect){.kind = kind};
    return effect;
}

static const struct rendezvous_state *keep_state(
    struct record_effect *effect, const struct rendezvous_state *state) {
    if (state != NULL) {
        effect->state = memory_allocate(sizeof *effect->state);
        rendezvous_state_copy(state, effect->state);
    }
    return effect->state;
}

static const char *keep_reason(struct record_effect *effect, const char *reason) {
    effect->reason = memory_duplicate_string(reason);
    return effect->reason;
}

/* Adds a TELL effect and copies what the event points to. */
static void record_effects_tell(
    struct record_effects *effects, const struct rendezvous_event *event) {
    struct record_effect *effect = record_effects_add(effects, RECORD_EFFECT_TELL);
    effect->told = *event;
    if (event->kind == RENDEZVOUS_EVENT_RECORD) {
        effect->told.state = keep_state(effect, event->state);
    } else if (event->kind == RENDEZVOUS_EVENT_WRITTEN) {
        effect->told.written.state = keep_state(effect, event->written.state);
    } else if (event->kind == RENDEZVOUS_EVENT_STANDING) {
        effect->told.standing.state = keep_state(effect, event->standing.state);
    } else if (event->kind == RENDEZVOUS_EVENT_CONNECTION_LOST) {
        effect->told.lost.reason = keep_reason(effect, event->lost.reason);
    } else if (event->kind == RENDEZVOUS_EVENT_BROKEN) {
        effect->told.reason = keep_reason(effect, event->reason);
    }
}

/* What follows from the store's replies: the next question, an event for the machine, or the end
 * when the content of the store cannot be used. Other programs may have written what a reply
 * contains, so it is not trusted. */

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

/* The lanes are open: asks what must be known before the record is read. */
/* Two questions are asked beside each other, on two lanes, so that the second takes no time. A host
 * that writes for others serves presence, so that this node asks for both at once. */
static void record_answer_greet(
    struct rendezvous_record_store *store, struct record_effects *effects) {
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

static void record_answer_take(struct rendezvous_record_store *store,
    enum record_question_kind kind, const struct store_reply *reply,
    struct record_effects *effects) {
    if (!is_answer(kind, reply)) {
        char *reason = text_format("the store gave no valid answer to %s",
            store_operation_name(record_question_operation(kind)));
        record_store_break_down(store, reason, effects);
        free(reason);
    } else if (takers[kind] != NULL) {
        takers[kind](store, reply, effects);
    }
}

/* The reply was longer than the longest possible record; `message` says so. */
static void record_answer_take_excess(struct rendezvous_record_store *store,
    enum record_question_kind kind, const char *message, struct record_effects *effects) {
    if (kind == RECORD_QUESTION_BEGINNING || kind == RECORD_QUESTION_RECORD ||
        kind == RECORD_QUESTION_WRITE) {
        refuse_record(store, message, effects);
    } else {
        record_store_break_down(store, message, effects);
    }
}

/* Record store. */

/* The value of a running node's presence key. */
#define RENDEZVOUS_PRESENCE_RUNNING "running"

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

/* Drops the lanes and reports that the record cannot be used. */
static void record_store_break_down(
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

/* Sends the question and records that its answer is pending. */
static void record_store_send(struct rendezvous_record_store *store,
    struct record_question question, struct record_effects *effects) {
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

/* Sends a question that has no operand but, for some kinds, a number. */
static void record_store_ask(struct rendezvous_record_store *store, enum record_question_kind kind,
    int64_t number, struct record_effects *effects) {
    record_store_send(store, (struct record_question){.kind = kind, .number = number}, effects);
}

/* Waits for what the host tells, where it tells this node anything and it does not wait already. */
static void record_store_watch_standing(
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
    case RENDEZVOUS_EFFECT_EXCLUDED:
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

/* Deletes the next key of an earlier round, if there is one. */
static void record_store_clear_next(
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
