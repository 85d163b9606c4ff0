/* SPDX-License-Identifier: BSD-3-Clause */
#include "library/rendezvous_object.h"

#include <muster/store_server.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/rendezvous/agent_record.h"
#include "base/duration.h"
#include "base/memory.h"
#include "core/node/node_machine.h"
#include "core/rendezvous/rendezvous_key.h"
#include "core/rendezvous/rendezvous_state.h"
#include "core/rendezvous/rendezvous_step.h"
#include "core/rendezvous/rendezvous_transcript.h"
#include "core/round/round_key.h"
#include "host/loop/clock.h"
#include "host/network/tcp_listener.h"
#include "wire/rendezvous/rendezvous_state_pickle.h"
#include "wire/store/store_codec.h"

static void rendezvous_member_tell(struct rendezvous_member *node, struct rendezvous_event event);
static void rendezvous_endpoint_free(struct rendezvous_endpoint *endpoint);

/* Called while an event is taken; everything is borrowed. Each may post. */
struct rendezvous_member_observer {
    void (*perform)(void *context, const struct rendezvous_effect *effect); /* of the backend */
    void (*joined)(void *context, const struct rendezvous_effect *world);
    void (*round_over)(void *context, const char *reason);
    /* Its part is over, or the record was closed while it goes on: CLOSED, FAILED, SETTLED. */
    void (*ended)(
        void *context, const struct rendezvous_effect *end, enum rendezvous_event_kind cause);
    void (*hosting)(void *context, int port); /* this node hosts the store */
    void (*left)(void *context);              /* lingering is over */
    void (*glanced)(void *context);           /* the glance has ended, or the record was seen */
    void *context;
};

enum rendezvous_glance_phase {
    RENDEZVOUS_GLANCE_NONE,
    RENDEZVOUS_GLANCE_CONNECTING,
    RENDEZVOUS_GLANCE_READING,
};

/* The record, read once before the node asks for a round. */
struct rendezvous_glance {
    enum rendezvous_glance_phase phase;
    bool is_closed;
    size_t waiting;
    struct muster_failure failure; /* of the glance that has ended last */
};

struct queued {
    struct queued *next;
    struct node_event_owned owned;
};

struct rendezvous_member {
    struct rendezvous_machine *machine;
    struct rendezvous_member_observer observer;
    struct rendezvous_diary diary;
    struct queued *first;
    struct queued **end;
    bool is_taking;
    bool has_asked; /* to join, at some time */
    bool is_connected;
    bool is_closing; /* as soon as it is connected */
    bool has_record; /* the machine has seen the record, or that there is none */
    struct rendezvous_glance glance;
};

/* Never NULL. */
static struct rendezvous_member *rendezvous_member_new(
    const struct rendezvous_machine_settings *settings,
    const struct rendezvous_member_observer *observer) {
    struct rendezvous_member *node = memory_allocate(sizeof *node);
    node->machine = rendezvous_machine_new(settings);
    node->observer = *observer;
    node->end = &node->first;
    return node;
}

static void drop_first(struct rendezvous_member *node) {
    struct queued *queued = node->first;
    node->first = queued->next;
    if (node->first == NULL) {
        node->end = &node->first;
    }
    node_event_owned_clear(&queued->owned);
    free(queued);
}

/* Accepts NULL. Not from inside the observer. */
static void rendezvous_member_free(struct rendezvous_member *node) {
    if (node == NULL) {
        return;
    }
    while (node->first != NULL) {
        drop_first(node);
    }
    rendezvous_machine_free(node->machine);
    rendezvous_diary_clear(&node->diary);
    free(node);
}

/* There is no agent that would exchange anything first. */
static void tell_world(struct rendezvous_member *node, const struct rendezvous_effect *effect) {
    node->observer.joined(node->observer.context, effect);
    rendezvous_member_tell(node, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_PLACED});
}

static void tell(struct rendezvous_member *node, const struct rendezvous_effect *effect,
    enum rendezvous_event_kind cause) {
    const struct rendezvous_member_observer *observer = &node->observer;
    switch (effect->kind) {
    case RENDEZVOUS_EFFECT_WORLD:
        tell_world(node, effect);
        break;
    case RENDEZVOUS_EFFECT_ROUND_OVER:
        observer->round_over(observer->context, effect->told.reason);
        break;
    case RENDEZVOUS_EFFECT_CLOSED:
    case RENDEZVOUS_EFFECT_FAILED:
    case RENDEZVOUS_EFFECT_SETTLED:
        observer->ended(observer->context, effect, cause);
        break;
    case RENDEZVOUS_EFFECT_STORE_AWAITED:
    case RENDEZVOUS_EFFECT_EXCLUDED:       /* it has no workers that could fail */
    case RENDEZVOUS_EFFECT_RELEASED:       /* it tells no role, so no host ranks its rounds */
    case RENDEZVOUS_EFFECT_FAILURE_STANDS: /* nobody asks */
    case RENDEZVOUS_EFFECT_KIND_COUNT:
        break;
    case RENDEZVOUS_EFFECT_CONNECT:
    case RENDEZVOUS_EFFECT_PRESENT:
    case RENDEZVOUS_EFFECT_BEAT:
    case RENDEZVOUS_EFFECT_FETCH:
    case RENDEZVOUS_EFFECT_WRITE:
    case RENDEZVOUS_EFFECT_TELL_WATCHERS:
    case RENDEZVOUS_EFFECT_COUNT_FINISHED:
    case RENDEZVOUS_EFFECT_CALL_ROLL:
    case RENDEZVOUS_EFFECT_ANSWER_ROLL:
    case RENDEZVOUS_EFFECT_WARM:
    case RENDEZVOUS_EFFECT_TELL_STANDINGS:
    case RENDEZVOUS_EFFECT_CUT_OFF:
    case RENDEZVOUS_EFFECT_ARM_TIMER:
        observer->perform(observer->context, effect);
        break;
    }
}

static void step(struct rendezvous_member *node, const struct rendezvous_event *event) {
    struct rendezvous_effects effects;
    rendezvous_diary_take(&node->diary, node->machine, event);
    rendezvous_machine_step(node->machine, event, &effects);
    for (size_t i = 0; i < effects.count; i++) {
        rendezvous_diary_follow(&node->diary, node->machine, &effects.items[i]);
        tell(node, &effects.items[i], event->kind);
    }
}

/* The machine closes what it is connected to. A node that has not joined yet never will: this comes
 * before the record that it would join by. */
static void close_if_connected(struct rendezvous_member *node) {
    if (node->is_closing && node->is_connected) {
        node->is_closing = false;
        rendezvous_member_tell(
            node, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_CLOSE_ASKED, .reason = ""});
    }
}

/* A glance. Until the node asks for a round its machine is told of nothing. */

static void end_glance(
    struct rendezvous_member *node, enum muster_error error, const char *reason) {
    struct rendezvous_glance *glance = &node->glance;
    if (glance->phase == RENDEZVOUS_GLANCE_NONE) {
        return;
    }
    glance->phase = RENDEZVOUS_GLANCE_NONE;
    glance->failure.error = error;
    snprintf(glance->failure.message, sizeof glance->failure.message, "%s", reason);
    node->observer.glanced(node->observer.context);
}

static void take_glance(struct rendezvous_member *node, const struct rendezvous_event *event) {
    struct rendezvous_glance *glance = &node->glance;
    if (event->kind == RENDEZVOUS_EVENT_CONNECTED &&
        glance->phase == RENDEZVOUS_GLANCE_CONNECTING) {
        glance->phase = RENDEZVOUS_GLANCE_READING;
        node->observer.perform(
            node->observer.context, &(struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_FETCH});
    } else if (event->kind == RENDEZVOUS_EVENT_RECORD) {
        glance->is_closed = event->state != NULL && event->state->is_closed;
        glance->waiting = event->state == NULL ? 0 : rendezvous_state_waiting(event->state);
        end_glance(node, MUSTER_OK, "");
    } else if (event->kind == RENDEZVOUS_EVENT_CONNECTION_LOST) {
        end_glance(node, MUSTER_ERROR_DISCONNECTED, event->lost.reason);
    } else if (event->kind == RENDEZVOUS_EVENT_BROKEN) {
        end_glance(node, MUSTER_ERROR_PROTOCOL, event->reason);
    }
}

static void take_rendezvous(struct rendezvous_member *node, const struct rendezvous_event *event) {
    if (!node->has_asked) {
        take_glance(node, event);
        return;
    }
    if (event->kind == RENDEZVOUS_EVENT_CONNECTED) {
        node->is_connected = true;
    } else if (event->kind == RENDEZVOUS_EVENT_CONNECTION_LOST) {
        node->is_connected = false;
    }
    step(node, event);
    close_if_connected(node);
    if (event->kind == RENDEZVOUS_EVENT_RECORD || event->kind == RENDEZVOUS_EVENT_WRITTEN) {
        node->has_record = true;
        node->observer.glanced(node->observer.context);
    }
}

static void take(struct rendezvous_member *node, const struct node_event *event) {
    if (event->part == NODE_RENDEZVOUS) {
        take_rendezvous(node, &event->rendezvous);
    } else if (event->membership.kind == MEMBERSHIP_EVENT_HOSTING) {
        node->observer.hosting(node->observer.context, event->membership.port);
    } else if (event->membership.kind == MEMBERSHIP_EVENT_LEFT) {
        node->observer.left(node->observer.context);
    }
}

/* Copies the event, fills in its time, and takes it and all that follow; from inside the observer
 * it is taken later. It is for an agent_mailbox: `context` is the node. */
static void rendezvous_member_post(void *context, const struct node_event *event) {
    struct rendezvous_member *node = context;
    struct queued *queued = memory_allocate(sizeof *queued);
    node_event_own(event, &queued->owned);
    *node->end = queued;
    node->end = &queued->next;
    if (node->is_taking) {
        return;
    }
    node->is_taking = true;
    while (node->first != NULL) {
        struct node_event *first = &node->first->owned.event;
        node_event_set_now(first, clock_now(), clock_wall_time());
        take(node, first);
        drop_first(node);
    }
    node->is_taking = false;
}

static void rendezvous_member_tell(struct rendezvous_member *node, struct rendezvous_event event) {
    rendezvous_member_post(
        node, &(struct node_event){.part = NODE_RENDEZVOUS, .rendezvous = event});
}

/* Asks for the next round. */
static void rendezvous_member_join(struct rendezvous_member *node) {
    node->has_asked = true;
    rendezvous_member_tell(node, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_JOIN_ASKED});
}

/* Closes the record, once there is a connection; `ended` follows. */
static void rendezvous_member_close(struct rendezvous_member *node) {
    node->is_closing = true;
    if (!node->has_asked) {
        rendezvous_member_join(node);
    } else {
        close_if_connected(node);
    }
}

const struct rendezvous_state *rendezvous_member_state(const struct rendezvous_member *node) {
    return rendezvous_machine_state(node->machine);
}

/* Rendezvous own backend. */

/* For how long a record that was reached once is tried, before the machine is told that it is lost.
 */
#define PATIENCE_SECONDS 30
/* A record that is read and written takes no more than so many times its length. */
#define MEMORY_FACTOR 16

struct rendezvous_own_backend {
    struct muster_rendezvous_backend backend;
    char *name;
    struct rendezvous_own_audience audience;
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

static void tell_machine(struct rendezvous_own_backend *own, struct rendezvous_event event) {
    own->audience.told(own->audience.context, &event);
}

static void tell_trouble(
    struct rendezvous_own_backend *own, enum rendezvous_event_kind kind, const char *reason) {
    char *text = text_format("%s: %s", own->name, reason);
    struct rendezvous_event event = {.kind = kind};
    if (kind == RENDEZVOUS_EVENT_BROKEN) {
        event.reason = text;
    } else {
        event.lost.reason = text;
    }
    tell_machine(own, event);
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
            tell_machine(own, (struct rendezvous_event){
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
    tell_machine(own, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_CONNECTED});
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
        tell_machine(own, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_RECORD,
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
    if (!record->exists) { /* as TorchElastic's nodes: it goes on with what it has written */
        bytes_clear(&own->token);
        tell_machine(own,
            (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_WRITTEN, .written = {true, NULL}});
        return;
    }
    if (read_record(own, record, &state)) {
        tell_machine(own, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_WRITTEN,
                              .written = {.has_won = record->is_set != 0, .state = &state}});
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
    tell_machine(own, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_CHANGED});
}

static void timer_fired(void *context) {
    struct rendezvous_own_backend *own = context;
    tell_machine(own, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_TIMER_FIRED});
}

/* Reads the record, and does not try again. */
static void rendezvous_own_backend_glance(struct rendezvous_own_backend *own) {
    begin(own, fetch, clock_now());
    fetch(own);
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
    const struct muster_rendezvous_backend *backend, const struct rendezvous_own_audience *audience,
    const struct log *log, struct rendezvous_own_backend **out_own, struct failure *failure) {
    struct rendezvous_own_backend *own = memory_allocate(sizeof *own);
    own->backend = *backend;
    own->name =
        memory_duplicate_string(backend->name != NULL ? backend->name : "the program's backend");
    own->audience = *audience;
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

/* Performs a node's rendezvous at an endpoint with the agent's own shells: hosts or joins the store
 * as the command does. After each round begins, the nodes tell each other through the store where
 * their first one serves the others. */

struct rendezvous_endpoint_settings {
    const struct launch_config *config; /* borrowed, as all of this */
    const struct store_key *key;
    const struct log *log;
    struct rendezvous_member *node;
    /* What the first node of this round has said, or why nobody will know. */
    void (*met)(void *context, const char *master, int port);
    void (*not_met)(void *context, const char *reason);
    void *context;
};

#define PORT_MAXIMUM 65535
/* A name or an address that another node has written. */
#define MASTER_MAXIMUM 255

/* Where nodes look for their master. The newest question of a rendezvous counts. */
struct question {
    struct rendezvous_endpoint *endpoint; /* NULL: nobody wants to know any more */
};

struct rendezvous_endpoint {
    struct rendezvous_endpoint_settings settings;
    struct agent_rendezvous_settings agent;
    struct agent_preparation preparation;
    struct node_settings node;
    char *where;
    struct agent_record *record;
    struct question *question; /* or NULL */
};

/* FAILURE_SYSTEM when this node is told to host the store and cannot open its port. */
static enum failure_code rendezvous_endpoint_new(struct event_loop *loop,
    const struct rendezvous_endpoint_settings *settings, struct rendezvous_endpoint **out_endpoint,
    struct failure *failure) {
    struct rendezvous_endpoint *endpoint = memory_allocate(sizeof *endpoint);
    const struct launch_config *config = settings->config;
    endpoint->settings = *settings;
    endpoint->where = text_format("%s:%d", config->dynamic.host, config->dynamic.port);
    endpoint->preparation.run_id = config->run_id;
    endpoint->node.membership.where = endpoint->where;
    endpoint->agent = (struct agent_rendezvous_settings){
        .config = config,
        .preparation = &endpoint->preparation,
        .node = &endpoint->node,
        .log = settings->log,
        .key = settings->key,
        .mailbox = {rendezvous_member_post, settings->node},
    };
    enum failure_code code = agent_record_new(loop, &endpoint->agent, &endpoint->record, failure);
    if (code != FAILURE_NONE) {
        rendezvous_endpoint_free(endpoint);
        return code;
    }
    *out_endpoint = endpoint;
    return FAILURE_NONE;
}

static void drop_question(struct rendezvous_endpoint *endpoint) {
    if (endpoint->question != NULL) {
        endpoint->question->endpoint = NULL; /* it is freed when it is answered */
        endpoint->question = NULL;
    }
}

/* Accepts NULL. */
static void rendezvous_endpoint_free(struct rendezvous_endpoint *endpoint) {
    if (endpoint != NULL) {
        drop_question(endpoint);
        agent_record_free(endpoint->record);
        free(endpoint->where);
        free(endpoint);
    }
}

static void rendezvous_endpoint_perform(
    struct rendezvous_endpoint *endpoint, const struct rendezvous_effect *effect) {
    agent_record_perform(endpoint->record, effect);
}

/* The master of a round. */

static void read_answer(
    const struct rendezvous_endpoint *endpoint, const struct store_reply *reply) {
    const struct rendezvous_endpoint_settings *settings = &endpoint->settings;
    const struct slice *items = reply->list.items;
    int64_t port = 0;
    if (reply->list.count != 2 || items[0].length == 0 || items[0].length > MASTER_MAXIMUM) {
        settings->not_met(settings->context, "the first node of the round gives no address");
        return;
    }
    char *master = text_format("%.*s", (int)items[0].length, (const char *)items[0].data);
    char *digits = text_format("%.*s",
        (int)(items[1].length > MASTER_MAXIMUM ? 0 : items[1].length), (const char *)items[1].data);
    if (text_parse_integer(digits, &port) != FAILURE_NONE || port < 0 || port > PORT_MAXIMUM) {
        settings->not_met(settings->context, "the first node of the round gives no port");
    } else {
        settings->met(settings->context, master, (int)port);
    }
    free(master);
    free(digits);
}

/* That the connection has ended is told elsewhere. */
static void answered(void *context, const struct store_client_result *result) {
    struct question *question = context;
    struct rendezvous_endpoint *endpoint = question->endpoint;
    if (endpoint != NULL) {
        endpoint->question = NULL;
        if (result->code == FAILURE_NONE) {
            read_answer(endpoint, result->reply);
        }
    }
    free(question);
}

static void list_keys(
    const struct rendezvous_endpoint *endpoint, int64_t round, struct text_list *keys) {
    round_key_list(&(struct round_key){.kind = ROUND_KEY_ADDRESS, .round = round},
        endpoint->settings.config->run_id, keys);
}

static void forget_question(struct rendezvous_endpoint *endpoint) {
    if (endpoint->question != NULL) {
        drop_question(endpoint);
        rendezvous_backend_cancel_waits(agent_record_backend(endpoint->record));
    }
}

/* Says where this node serves the others of the round, or waits until its first node has said it;
 * `met` follows, perhaps never if the round is over. Replaces an earlier one. */
static void rendezvous_endpoint_say(
    struct rendezvous_endpoint *endpoint, int64_t round, const char *master, int port) {
    struct owned_request request = {0};
    forget_question(endpoint);
    list_keys(endpoint, round, &request.keys);
    text_list_add(&request.values, master);
    text_list_add_taken(&request.values, text_format("%d", port));
    owned_request_finish(&request, STORE_MULTI_SET, 0);
    struct store_client_call call = {.request = request.request,
        .is_raw = true,
        .timeout = endpoint->settings.config->dynamic.read_timeout};
    bool is_sent = rendezvous_backend_ask(agent_record_backend(endpoint->record), &call);
    owned_request_clear(&request);
    if (is_sent) {
        endpoint->settings.met(endpoint->settings.context, master, port);
    }
}

static void rendezvous_endpoint_ask(struct rendezvous_endpoint *endpoint, int64_t round) {
    struct owned_request request = {0};
    forget_question(endpoint);
    struct question *question = memory_allocate(sizeof *question);
    question->endpoint = endpoint;
    list_keys(endpoint, round, &request.keys);
    owned_request_finish(&request, STORE_MULTI_GET, 0);
    struct store_client_call call = {.request = request.request,
        .is_raw = true,
        .waits_first = true,
        .timeout = DURATION_FOREVER,
        .done = answered,
        .context = question};
    if (rendezvous_backend_wait(agent_record_backend(endpoint->record), &call)) {
        endpoint->question = question;
    } else {
        free(question);
    }
    owned_request_clear(&request);
}

/* Leaves, and waits until the other nodes have left the store that this one hosts; the node's
 * `left` follows. */
static void rendezvous_endpoint_linger(
    struct rendezvous_endpoint *endpoint, struct duration patience) {
    forget_question(endpoint);
    agent_record_disconnect(endpoint->record);
    agent_record_linger(endpoint->record, patience);
}

/* Rendezvous object. */

#define LOOPBACK "127.0.0.1"
#define DEFAULT_LINGERING_SECONDS 30

/* What the program is told. It may free the rendezvous then, which is done later. */

static void answer(struct muster_rendezvous *rendezvous, enum muster_error error) {
    struct rendezvous_asking asked = rendezvous->asked;
    if (!asked.is_asked || rendezvous->is_freed) {
        return;
    }
    rendezvous->asked = (struct rendezvous_asking){0};
    if (error == MUSTER_OK) {
        rendezvous->is_told = true;
        asked.done(asked.context, MUSTER_OK, "", &rendezvous->info);
    } else {
        asked.done(asked.context, error, rendezvous->end.message, NULL);
    }
}

static void end(struct muster_rendezvous *rendezvous, enum muster_error error, const char *reason) {
    rendezvous->is_over = true;
    rendezvous->has_world = false;
    rendezvous->end.error = error;
    snprintf(rendezvous->end.message, sizeof rendezvous->end.message, "%s", reason);
    answer(rendezvous, error);
    rendezvous->has_glanced = true;
    rendezvous_object_wake(rendezvous);
}

static void write_log(
    void *context, enum log_level level, const char *origin, const char *message) {
    const struct muster_rendezvous *rendezvous = context;
    if (rendezvous->settings.log != NULL && !rendezvous->is_freed) {
        rendezvous->settings.log(
            rendezvous->settings.context, 10 * ((int)level + 1), origin, message);
    }
}

static void write_event(void *context, const struct event_rendezvous *record) {
    static const enum muster_rendezvous_node_state states[] = {
        [EVENT_NODE_INIT] = MUSTER_RENDEZVOUS_NODE_INIT,
        [EVENT_NODE_RUNNING] = MUSTER_RENDEZVOUS_NODE_RUNNING,
        [EVENT_NODE_SUCCEEDED] = MUSTER_RENDEZVOUS_NODE_SUCCEEDED,
        [EVENT_NODE_FAILED] = MUSTER_RENDEZVOUS_NODE_FAILED,
    };
    const struct muster_rendezvous *rendezvous = context;
    const struct muster_rendezvous_event event = {
        .name = record->name,
        .run_id = record->run_id,
        .message = record->message,
        .hostname = record->host_name,
        .pid = record->pid,
        .node_state = states[record->state],
        .master_endpoint = "",
        .rank = record->has_rank ? record->rank : -1,
        .has_local_id = record->has_local_id,
        .local_id = record->has_local_id ? record->local_id : 0,
        .error_trace = record->trouble,
    };
    if (!rendezvous->is_freed) {
        rendezvous->settings.event(rendezvous->settings.context, &event);
    }
}

/* Joining. */

static void join(struct muster_rendezvous *rendezvous) {
    rendezvous->is_joining = true;
    rendezvous->has_world = false;
    rendezvous->is_round_over = false;
    rendezvous_member_join(rendezvous->node);
}

/* A node that is in a round begins the next one: TorchElastic's handler leaves its round first. */
static void join_next(struct muster_rendezvous *rendezvous) {
    if (rendezvous->is_over) {
        answer(rendezvous, rendezvous->end.error);
    } else if (rendezvous->is_met && !rendezvous->is_told && !rendezvous->is_round_over) {
        answer(rendezvous, MUSTER_OK); /* nobody waited for it when it came */
    } else if (!rendezvous->is_joining) {
        if (rendezvous->has_world && !rendezvous->is_round_over) {
            rendezvous_member_tell(
                rendezvous->node, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_RESTART_ASKED,
                                      .reason = "a node asks for the next round"});
        }
        join(rendezvous);
    }
}

/* Of a node that has not asked for a round. */
static void glance(struct muster_rendezvous *rendezvous) {
    struct rendezvous_glance *glance = &rendezvous->node->glance;
    struct instant deadline = instant_after(clock_now(), rendezvous->config.dynamic.read_timeout);
    *glance = (struct rendezvous_glance){.phase = RENDEZVOUS_GLANCE_READING};
    if (rendezvous->endpoint == NULL) {
        rendezvous_own_backend_glance(rendezvous->own);
    } else {
        glance->phase = RENDEZVOUS_GLANCE_CONNECTING;
        rendezvous_endpoint_perform(rendezvous->endpoint,
            &(struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_CONNECT, .deadline = deadline});
    }
}

static void do_soon(void *context) {
    struct muster_rendezvous *rendezvous = context;
    if (rendezvous->is_next_asked) {
        rendezvous->is_next_asked = false;
        join_next(rendezvous);
    }
    if (rendezvous->is_close_asked && !rendezvous->is_freed) {
        rendezvous->is_close_asked = false;
        rendezvous_member_close(rendezvous->node);
    }
    if (rendezvous->is_glancing && !rendezvous->node->has_asked && !rendezvous->is_freed) {
        glance(rendezvous);
    }
}

void rendezvous_object_ask_next(struct muster_rendezvous *rendezvous) {
    rendezvous->is_next_asked = true;
    event_timer_set(rendezvous->soon, clock_now());
}

void rendezvous_object_begin_glance(struct muster_rendezvous *rendezvous) {
    rendezvous->is_glancing = true;
    rendezvous->has_glanced = false;
    event_timer_set(rendezvous->soon, clock_now());
}

/* What has been connected to stays so only for a node that takes part. */
void rendezvous_object_end_glance(struct muster_rendezvous *rendezvous) {
    rendezvous->is_glancing = false;
    rendezvous->node->glance.phase = RENDEZVOUS_GLANCE_NONE;
    if (!rendezvous->node->has_asked && rendezvous->endpoint != NULL) {
        agent_record_disconnect(rendezvous->endpoint->record);
    }
}

const struct muster_failure *rendezvous_object_glance(
    const struct muster_rendezvous *rendezvous, bool *out_is_closed, size_t *out_waiting) {
    const struct rendezvous_glance *glance = &rendezvous->node->glance;
    *out_is_closed = glance->is_closed;
    *out_waiting = glance->waiting;
    return &glance->failure;
}

void rendezvous_object_ask_close(struct muster_rendezvous *rendezvous) {
    rendezvous->is_close_asked = true;
    event_timer_set(rendezvous->soon, clock_now());
}

/* What the node tells. */

static void perform(void *context, const struct rendezvous_effect *effect) {
    const struct muster_rendezvous *rendezvous = context;
    if (rendezvous->endpoint != NULL) {
        rendezvous_endpoint_perform(rendezvous->endpoint, effect);
    } else {
        rendezvous_own_backend_perform(rendezvous->own, effect);
    }
}

static void name_round(
    struct muster_rendezvous *rendezvous, const struct rendezvous_effect *effect) {
    struct text key = {0};
    text_clear(&rendezvous->node_name);
    text_clear(&rendezvous->prefix);
    node_identity_describe(&effect->world.identity, &rendezvous->node_name);
    rendezvous_key_write_round(rendezvous->config.run_id, effect->world.round, &key);
    /* the folder, as a prefix store has it: without the '/' on either side */
    text_append_bytes(&rendezvous->prefix, text_string(&key) + 1, key.length - 2);
    text_clear(&key);
    rendezvous->info = (struct muster_rendezvous_info){
        .round = effect->world.round,
        .rank = effect->world.group_rank,
        .world_size = effect->world.node_count,
        .node = text_string(&rendezvous->node_name),
        .store_prefix = text_string(&rendezvous->prefix),
    };
}

/* It is served from the first round on that this node is the first of. */
static enum muster_error serve_workers(
    struct muster_rendezvous *rendezvous, struct muster_failure *failure) {
    struct muster_store_server_settings settings = MUSTER_STORE_SERVER_SETTINGS;
    settings.port = rendezvous->settings.master_port;
    return rendezvous->workers_store != NULL
               ? MUSTER_OK
               : muster_store_server_new(&settings, &rendezvous->workers_store, failure);
}

/* As TorchElastic's get_free_port: whoever is quicker may take it. */
static int find_port(const struct muster_rendezvous *rendezvous) {
    int fd;
    int port = 0;
    if (rendezvous->workers_store != NULL) {
        return muster_store_server_port(rendezvous->workers_store);
    }
    if (rendezvous->settings.master_port > 0) {
        return rendezvous->settings.master_port;
    }
    if (tcp_listener_open(NULL, 0, &fd, &port, NULL) == FAILURE_NONE) {
        close(fd);
    }
    return port;
}

static void meet_at_endpoint(
    struct muster_rendezvous *rendezvous, const struct rendezvous_effect *effect) {
    bool is_host = rendezvous->hosted_port > 0;
    rendezvous->info.store_host = is_host ? LOOPBACK : rendezvous->config.dynamic.host;
    rendezvous->info.store_port =
        is_host ? rendezvous->hosted_port : rendezvous->config.dynamic.port;
    struct muster_failure failure = {0};
    if (rendezvous->settings.is_torchrun) {
        rendezvous->is_met = true;
        answer(rendezvous, MUSTER_OK);
    } else if (effect->world.group_rank == 0 && rendezvous->settings.use_agent_store &&
               serve_workers(rendezvous, &failure) != MUSTER_OK) {
        end(rendezvous, failure.error, failure.message);
    } else if (effect->world.group_rank == 0) {
        const char *address = rendezvous->master_addr != NULL ? rendezvous->master_addr
                                                              : effect->world.identity.address;
        rendezvous_endpoint_say(
            rendezvous->endpoint, effect->world.round, address, find_port(rendezvous));
    } else {
        rendezvous_endpoint_ask(rendezvous->endpoint, effect->world.round);
    }
}

static void joined(void *context, const struct rendezvous_effect *effect) {
    struct muster_rendezvous *rendezvous = context;
    rendezvous->is_joining = false;
    rendezvous->has_world = true;
    rendezvous->is_round_over = false;
    rendezvous->is_told = false;
    rendezvous->is_met = rendezvous->endpoint == NULL;
    name_round(rendezvous, effect);
    if (rendezvous->endpoint != NULL) {
        meet_at_endpoint(rendezvous, effect);
    } else {
        answer(rendezvous, MUSTER_OK);
    }
}

static void met(void *context, const char *master, int port) {
    struct muster_rendezvous *rendezvous = context;
    free(rendezvous->met_at);
    rendezvous->met_at = memory_duplicate_string(master);
    rendezvous->info.master_addr = rendezvous->met_at;
    rendezvous->info.master_port = port;
    rendezvous->is_met = true;
    answer(rendezvous, MUSTER_OK);
}

static void not_met(void *context, const char *reason) {
    end(context, MUSTER_ERROR_PROTOCOL, reason);
}

/* Who still waits to be told of the round, waits for the next one instead. */
static void round_over(void *context, const char *reason) {
    struct muster_rendezvous *rendezvous = context;
    bool is_known = rendezvous->is_told;
    rendezvous->is_round_over = true;
    rendezvous->is_met = false;
    if (!is_known) {
        join(rendezvous);
    } else if (rendezvous->settings.round_over != NULL && !rendezvous->is_freed) {
        rendezvous->settings.round_over(rendezvous->settings.context, reason);
    }
}

static enum muster_error error_of(enum rendezvous_event_kind cause) {
    if (cause == RENDEZVOUS_EVENT_BROKEN) {
        return MUSTER_ERROR_PROTOCOL;
    }
    return cause == RENDEZVOUS_EVENT_CONNECTION_LOST ? MUSTER_ERROR_DISCONNECTED
                                                     : MUSTER_ERROR_TIMEOUT;
}

static void end_closed(
    struct muster_rendezvous *rendezvous, const struct rendezvous_effect *effect) {
    const char *reason = effect->told.reason;
    if (rendezvous->has_world && !rendezvous->is_round_over && *reason == '\0') {
        return; /* its round goes on, though none will follow */
    }
    if (effect->told.is_spare && *reason == '\0') {
        end(rendezvous, MUSTER_ERROR_GRACEFUL_EXIT, "the job ended well without this node");
    } else {
        end(rendezvous, MUSTER_ERROR_CLOSED, *reason != '\0' ? reason : "the rendezvous is closed");
    }
}

static void ended(
    void *context, const struct rendezvous_effect *effect, enum rendezvous_event_kind cause) {
    struct muster_rendezvous *rendezvous = context;
    if (effect->kind == RENDEZVOUS_EFFECT_CLOSED) {
        end_closed(rendezvous, effect);
    } else if (effect->kind == RENDEZVOUS_EFFECT_FAILED) {
        end(rendezvous, error_of(cause), effect->told.reason);
    } else if (rendezvous_member_state(rendezvous->node)->is_closed) {
        end(rendezvous, MUSTER_ERROR_CLOSED, "the rendezvous is closed");
    } else {
        end(rendezvous, error_of(cause), "the rendezvous could not be closed");
    }
}

static void hosting(void *context, int port) {
    struct muster_rendezvous *rendezvous = context;
    struct rendezvous_member *node = rendezvous->node;
    if (rendezvous->hosted_port == 0) {
        rendezvous_diary_host(&node->diary, rendezvous_machine_identity(node->machine));
    }
    rendezvous->hosted_port = port;
}

static void left(void *context) {
    struct muster_rendezvous *rendezvous = context;
    rendezvous->has_left = true;
    rendezvous_object_wake(rendezvous);
}

static void glanced(void *context) {
    struct muster_rendezvous *rendezvous = context;
    rendezvous->has_glanced = true;
    if (rendezvous->is_glancing) {
        rendezvous_object_wake(rendezvous);
    }
}

/* For rendezvous.c. */

bool rendezvous_object_is_closed(const struct muster_rendezvous *rendezvous) {
    return rendezvous_member_state(rendezvous->node)->is_closed ||
           (rendezvous->is_over && (rendezvous->end.error == MUSTER_ERROR_CLOSED ||
                                       rendezvous->end.error == MUSTER_ERROR_GRACEFUL_EXIT));
}

bool rendezvous_object_has_seen(const struct muster_rendezvous *rendezvous) {
    return rendezvous->has_world || rendezvous->is_round_over || rendezvous->node->has_record ||
           rendezvous_object_is_closed(rendezvous);
}

bool rendezvous_object_linger(struct muster_rendezvous *rendezvous) {
    double seconds = rendezvous->settings.linger_timeout;
    if (rendezvous->endpoint == NULL || rendezvous->hosted_port == 0 || seconds < 0) {
        return false;
    }
    rendezvous_endpoint_linger(rendezvous->endpoint,
        duration_from_seconds(seconds > 0 ? seconds : DEFAULT_LINGERING_SECONDS));
    return true;
}

static void take_alarm(void *context) {
    struct muster_rendezvous *rendezvous = context;
    rendezvous->is_alarmed = true;
    rendezvous_object_wake(rendezvous);
}

void rendezvous_object_set_alarm(struct muster_rendezvous *rendezvous, struct duration timeout) {
    rendezvous->is_alarmed = false;
    event_timer_set(rendezvous->alarm, instant_after(clock_now(), timeout));
}

void rendezvous_object_wake(struct muster_rendezvous *rendezvous) {
    rendezvous->is_woken = true;
    event_loop_stop(embedded_loop_inside(rendezvous->embedded));
}

const struct muster_rendezvous_backend *rendezvous_own_backend_functions(
    const struct rendezvous_own_backend *own) {
    return &own->backend;
}

/* Life. */

static void tell_node(void *context, const struct rendezvous_event *event) {
    rendezvous_member_tell(context, *event);
}

enum failure_code rendezvous_object_open(struct muster_rendezvous *rendezvous,
    const struct muster_rendezvous_backend *backend,
    const struct rendezvous_machine_settings *machine, struct failure *failure) {
    const struct rendezvous_member_observer observer = {
        .perform = perform,
        .joined = joined,
        .round_over = round_over,
        .ended = ended,
        .hosting = hosting,
        .left = left,
        .glanced = glanced,
        .context = rendezvous,
    };
    struct event_loop *loop = embedded_loop_inside(rendezvous->embedded);
    const struct rendezvous_endpoint_settings settings = {
        .config = &rendezvous->config,
        .key = job_token_key(rendezvous->token),
        .log = &rendezvous->log,
        .met = met,
        .not_met = not_met,
        .context = rendezvous,
        .node = rendezvous->node = rendezvous_member_new(machine, &observer),
    };
    rendezvous->log = (struct log){LOG_LEVEL_DEBUG, write_log, rendezvous};
    rendezvous->node->diary = (struct rendezvous_diary){
        .run_id = rendezvous->config.run_id,
        .record = rendezvous->settings.event != NULL ? write_event : NULL,
        .context = rendezvous,
    };
    rendezvous->alarm = event_timer_new(loop, take_alarm, rendezvous);
    rendezvous->soon = event_timer_new(loop, do_soon, rendezvous);
    if (backend != NULL) {
        const struct rendezvous_own_audience audience = {tell_node, rendezvous->node};
        return rendezvous_own_backend_new(
            loop, backend, &audience, &rendezvous->log, &rendezvous->own, failure);
    }
    return rendezvous_endpoint_new(loop, &settings, &rendezvous->endpoint, failure);
}

void rendezvous_object_destroy(struct muster_rendezvous *rendezvous) {
    rendezvous->is_freed = true; /* the program is told nothing any more */
    rendezvous_endpoint_free(rendezvous->endpoint);
    rendezvous_own_backend_free(rendezvous->own);
    rendezvous_member_free(rendezvous->node);
    event_timer_free(rendezvous->alarm);
    event_timer_free(rendezvous->soon);
    muster_store_server_free(rendezvous->workers_store);
    embedded_loop_free(rendezvous->embedded);
    job_token_free(rendezvous->token);
    launch_config_clear(&rendezvous->config);
    text_clear(&rendezvous->node_name);
    text_clear(&rendezvous->prefix);
    free(rendezvous->met_at);
    free(rendezvous->master_addr);
    free(rendezvous);
}
