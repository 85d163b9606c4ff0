/* SPDX-License-Identifier: BSD-3-Clause */
#include "library/rendezvous_own_backend.h"

#include <stdlib.h>

#include "base/backoff.h"
#include "base/memory.h"
#include "core/rendezvous/rendezvous_state.h"
#include "host/loop/clock.h"
#include "host/loop/random_seed.h"
#include "wire/rendezvous/rendezvous_state_pickle.h"

/* For how long a record that was reached once is tried, before the machine is told that it is lost.
 */
#define PATIENCE_SECONDS 30
/* A record that is read and written takes no more than so many times its length. */
#define MEMORY_FACTOR 16

struct rendezvous_own_backend {
    struct muster_rendezvous_backend backend;
    char *name;
    struct rendezvous_member *node;
    const struct log *log;
    struct node_identity me;        /* the name that is present */
    struct node_table gone;         /* of the record seen last: the machine knows it */
    struct event_descriptor *watch; /* or NULL */
    struct event_timer *timer;      /* of the machine */
    /* What the machine has asked for, of which it asks one at a time: tried until the deadline. */
    void (*attempt)(struct rendezvous_own_backend *own);
    struct event_timer *again;
    struct backoff backoff;
    struct instant deadline;
    struct bytes draft; /* to be written */
    struct bytes token; /* of the record seen last; empty: there was none */
    bool is_silent;
};

/* What the machine is told. */

static void tell_trouble(
    struct rendezvous_own_backend *own, enum rendezvous_event_kind kind, const char *reason) {
    char *text = text_format("%s: %s", own->name, reason);
    struct rendezvous_event event = {.kind = kind};
    if (kind == RENDEZVOUS_EVENT_BROKEN) {
        event.reason = text;
    } else {
        event.lost.reason = text;
    }
    rendezvous_member_tell(own->node, event);
    free(text);
}

/* Tries again later, unless it is too late or would not help. */
static void take_error(struct rendezvous_own_backend *own, enum muster_error error,
    const struct muster_failure *failure) {
    const char *reason = failure->message[0] != '\0' ? failure->message : muster_error_text(error);
    struct instant next = instant_after(clock_now(), backoff_next(&own->backoff));
    if (error == MUSTER_ERROR_PROTOCOL) {
        tell_trouble(own, RENDEZVOUS_EVENT_BROKEN, reason);
    } else if (instant_is_before(next, own->deadline)) {
        event_timer_set(own->again, next);
    } else {
        tell_trouble(own, RENDEZVOUS_EVENT_CONNECTION_LOST, reason);
    }
}

/* The program's message is to end where its room does. */
static void close_message(struct muster_failure *failure) {
    failure->message[sizeof failure->message - 1] = '\0';
}

/* Returns false when the machine was told what is wrong instead. */
static bool read_record(struct rendezvous_own_backend *own,
    const struct muster_rendezvous_record *record, struct rendezvous_state *out_state) {
    static const struct muster_failure no_memory = {.message = "there is no memory for its record"};
    struct text reason = {0};
    if (!record->exists) {
        bytes_clear(&own->token);
        return true;
    }
    if (record->state == NULL || record->token == NULL || record->token_length == 0 ||
        record->token_length > MUSTER_RENDEZVOUS_TOKEN_MAXIMUM ||
        record->state_length > MUSTER_RENDEZVOUS_STATE_MAXIMUM) {
        tell_trouble(own, RENDEZVOUS_EVENT_BROKEN,
            "its record lacks a state or a token, or one of them is too long");
        return false;
    }
    if (!spare_memory_is_enough_for(record->state_length, MEMORY_FACTOR)) {
        take_error(own, MUSTER_ERROR_MEMORY, &no_memory);
        return false;
    }
    if (rendezvous_state_read_pickle((struct slice){record->state, record->state_length}, out_state,
            &reason) != FAILURE_NONE) {
        char *text = text_format("its record: %s", text_string(&reason));
        tell_trouble(own, RENDEZVOUS_EVENT_BROKEN, text);
        free(text);
        text_clear(&reason);
        return false;
    }
    bytes_clear(&own->token);
    return bytes_append(&own->token, record->token, record->token_length) == FAILURE_NONE;
}

/* Presence. */

static void present(struct rendezvous_own_backend *own, const struct node_identity *identity) {
    struct text name = {0};
    struct muster_failure failure = {0};
    own->me = *identity;
    if (own->backend.present == NULL) {
        return;
    }
    node_identity_write(identity, &name);
    enum muster_error error =
        own->backend.present(own->backend.context, text_string(&name), &failure);
    close_message(&failure);
    if (error != MUSTER_OK) {
        log_warning(own->log, "%s: this node is not present, and is missed by its heartbeats: %s",
            own->name, failure.message[0] != '\0' ? failure.message : muster_error_text(error));
    }
    text_clear(&name);
}

static bool is_gone(
    const struct rendezvous_own_backend *own, const struct node_identity *identity) {
    struct text name = {0};
    if (own->is_silent || node_identity_equals(identity, &own->me)) {
        return false;
    }
    node_identity_write(identity, &name);
    bool is_gone = own->backend.is_gone(own->backend.context, text_string(&name)) != 0;
    text_clear(&name);
    return is_gone;
}

/* The machine is told once, since it looks at the record again then, and before it sees the record.
 */
static void look_for_gone(
    struct rendezvous_own_backend *own, const struct rendezvous_state *state) {
    struct node_table gone = {0};
    for (size_t i = 0; i < state->count && own->backend.is_gone != NULL; i++) {
        const struct node_identity *identity = &state->nodes[i].identity;
        if (node_table_find(&own->gone, identity) != NODE_TABLE_ABSENT) {
            node_table_put(&gone, identity, 0);
        } else if (is_gone(own, identity)) {
            node_table_put(&gone, identity, 0);
            rendezvous_member_tell(
                own->node, (struct rendezvous_event){
                               .kind = RENDEZVOUS_EVENT_NODE_GONE, .gone = {*identity, false}});
        }
    }
    node_table_clear(&own->gone);
    own->gone = gone;
}

/* What the machine asks for. */

static void reach(struct rendezvous_own_backend *own) {
    struct muster_rendezvous_record record = {0};
    struct muster_failure failure = {0};
    enum muster_error error = own->backend.get_state(own->backend.context, &record, &failure);
    close_message(&failure);
    if (error != MUSTER_OK) {
        take_error(own, error, &failure);
        return;
    }
    rendezvous_member_tell(
        own->node, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_CONNECTED});
}

static void fetch(struct rendezvous_own_backend *own) {
    struct muster_rendezvous_record record = {0};
    struct muster_failure failure = {0};
    struct rendezvous_state state = {0};
    enum muster_error error = own->backend.get_state(own->backend.context, &record, &failure);
    close_message(&failure);
    if (error != MUSTER_OK) {
        take_error(own, error, &failure);
    } else if (read_record(own, &record, &state)) {
        look_for_gone(own, &state);
        rendezvous_member_tell(own->node, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_RECORD,
                                              .state = record.exists ? &state : NULL});
    }
    rendezvous_state_clear(&state);
}

static void take_written(
    struct rendezvous_own_backend *own, const struct muster_rendezvous_record *record) {
    struct rendezvous_state state = {0};
    if (record->is_set && !record->exists) {
        tell_trouble(
            own, RENDEZVOUS_EVENT_BROKEN, "its record was set, and there is none all the same");
        return;
    }
    if (read_record(own, record, &state)) {
        rendezvous_member_tell(
            own->node, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_WRITTEN,
                           .written = {.has_won = record->is_set != 0,
                               .state = record->exists ? &state : NULL}});
    }
    rendezvous_state_clear(&state);
}

static void write_draft(struct rendezvous_own_backend *own) {
    struct muster_rendezvous_record record = {0};
    struct muster_failure failure = {0};
    struct slice draft = bytes_slice(&own->draft);
    struct slice token = bytes_slice(&own->token);
    enum muster_error error = own->backend.set_state(own->backend.context, draft.data, draft.length,
        token.length > 0 ? token.data : NULL, token.length, &record, &failure);
    close_message(&failure);
    if (error != MUSTER_OK) {
        take_error(own, error, &failure);
    } else {
        take_written(own, &record);
    }
}

static void spell(struct rendezvous_own_backend *own, const struct rendezvous_state *state) {
    bytes_clear(&own->draft);
    if (rendezvous_state_write_pickle(state, &own->draft) != FAILURE_NONE) {
        bytes_clear(&own->draft);
        tell_trouble(own, RENDEZVOUS_EVENT_BROKEN, "the record cannot be spelled");
        return;
    }
    write_draft(own);
}

static void begin(struct rendezvous_own_backend *own,
    void (*attempt)(struct rendezvous_own_backend *own), struct instant deadline) {
    own->attempt = attempt;
    own->deadline = deadline;
    backoff_init(&own->backoff, random_seed());
}

static void attempt_again(void *context) {
    struct rendezvous_own_backend *own = context;
    if (!own->is_silent) {
        own->attempt(own);
    }
}

static void note_change(void *context) {
    struct rendezvous_own_backend *own = context;
    if (own->is_silent) {
        return;
    }
    if (own->backend.changed != NULL) {
        own->backend.changed(own->backend.context);
    }
    rendezvous_member_tell(own->node, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_CHANGED});
}

static void timer_fired(void *context) {
    struct rendezvous_own_backend *own = context;
    rendezvous_member_tell(
        own->node, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_TIMER_FIRED});
}

void rendezvous_own_backend_perform(
    struct rendezvous_own_backend *own, const struct rendezvous_effect *effect) {
    struct instant patience = instant_after(clock_now(), duration_from_seconds(PATIENCE_SECONDS));
    if (own->is_silent) {
        return;
    }
    if (effect->kind == RENDEZVOUS_EFFECT_CONNECT) {
        begin(own, reach, effect->deadline);
        node_table_clear(&own->gone);
        reach(own);
    } else if (effect->kind == RENDEZVOUS_EFFECT_FETCH) {
        begin(own, fetch, patience);
        fetch(own);
    } else if (effect->kind == RENDEZVOUS_EFFECT_WRITE) {
        begin(own, write_draft, patience);
        spell(own, effect->write.state);
    } else if (effect->kind == RENDEZVOUS_EFFECT_ARM_TIMER) {
        event_timer_set(own->timer, effect->deadline);
    } else if (effect->kind == RENDEZVOUS_EFFECT_PRESENT) {
        present(own, &effect->present.identity);
    } /* nobody counts or calls */
}

/* Life. */

enum failure_code rendezvous_own_backend_new(struct event_loop *loop,
    const struct muster_rendezvous_backend *backend, struct rendezvous_member *node,
    const struct log *log, struct rendezvous_own_backend **out_own, struct failure *failure) {
    struct rendezvous_own_backend *own = memory_allocate(sizeof *own);
    own->backend = *backend;
    own->name =
        memory_duplicate_string(backend->name != NULL ? backend->name : "the program's backend");
    own->node = node;
    own->log = log;
    bytes_init(&own->draft, MUSTER_RENDEZVOUS_STATE_MAXIMUM);
    bytes_init(&own->token, MUSTER_RENDEZVOUS_TOKEN_MAXIMUM);
    own->timer = event_timer_new(loop, timer_fired, own);
    own->again = event_timer_new(loop, attempt_again, own);
    enum failure_code code = FAILURE_NONE;
    if (backend->has_watch) {
        code =
            event_descriptor_new(loop, backend->watch_fd, note_change, own, &own->watch, failure);
    }
    if (code != FAILURE_NONE) {
        rendezvous_own_backend_free(own);
        return code;
    }
    *out_own = own;
    return FAILURE_NONE;
}

void rendezvous_own_backend_silence(struct rendezvous_own_backend *own) {
    if (own == NULL) {
        return;
    }
    own->is_silent = true;
    if (own->backend.present != NULL && own->me.address[0] != '\0') {
        (void)own->backend.present(own->backend.context, NULL, &(struct muster_failure){0});
    }
}

void rendezvous_own_backend_free(struct rendezvous_own_backend *own) {
    if (own != NULL) {
        event_descriptor_free(own->watch);
        event_timer_free(own->timer);
        event_timer_free(own->again);
        bytes_clear(&own->draft);
        bytes_clear(&own->token);
        node_table_clear(&own->gone);
        free(own->name);
        free(own);
    }
}
