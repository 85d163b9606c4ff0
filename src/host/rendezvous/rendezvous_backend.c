/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/rendezvous/rendezvous_backend.h"

#include <stdlib.h>

#include "base/memory.h"
#include "host/loop/random_seed.h"
#include "host/rendezvous/rendezvous_lanes.h"
#include "wire/rendezvous/rendezvous_record_store.h"

/* A record that is read and written takes no more than so many times its length. */
#define RECORD_FACTOR 16

struct rendezvous_backend {
    struct event_loop *loop;
    struct rendezvous_backend_observer observer;
    struct rendezvous_lanes lanes;
    struct rendezvous_record_store *store;
    struct record_effects undelivered; /* of a call from outside; the timer delivers the event */
    struct event_timer *timer;
    struct rendezvous_effect connecting; /* the last CONNECT */
};

/* A request under way. */
struct pending_call {
    struct rendezvous_backend *backend;
    uint64_t tag;
};

/* Calling the observer. */

/* Calls the observer for the last effect, if that is a TELL. The observer may free the backend, so
 * the backend must not be used afterwards. */
static void deliver_event(
    const struct rendezvous_backend_observer *observer, const struct record_effects *effects) {
    if (effects->count > 0 && effects->items[effects->count - 1].kind == RECORD_EFFECT_TELL) {
        observer->told(observer->context, &effects->items[effects->count - 1].told);
    }
}

static void timer_fired(void *context) {
    struct rendezvous_backend *backend = context;
    struct record_effects effects = backend->undelivered;
    backend->undelivered = (struct record_effects){0};
    deliver_event(&backend->observer, &effects);
    record_effects_clear(&effects);
}

/* Drops the event that has not been delivered yet, because it is out of date. */
static void drop_undelivered(struct rendezvous_backend *backend) {
    event_timer_stop(backend->timer);
    record_effects_clear(&backend->undelivered);
}

/* Carrying out effects. */

static void answered(void *context, const struct store_client_result *result);

static void send(struct rendezvous_backend *backend, const struct record_sending *sending) {
    struct pending_call pending = {backend, sending->tag};
    struct store_client_call call = {
        .request = sending->own.request,
        .is_raw = true,
        .rests = sending->rests,
        .timeout = sending->timeout,
        .done = answered,
        .context = memory_duplicate(&pending, sizeof pending),
    };
    rendezvous_lanes_send(&backend->lanes, sending->lane, &call);
}

static void open_lanes(struct rendezvous_backend *backend, const struct record_effect *effect) {
    struct rendezvous_lanes_trying trying = {.pause = effect->pause,
        .patience = instant_until(event_loop_now(backend->loop), effect->deadline),
        .refusal_patience = effect->refusal_patience};
    rendezvous_lanes_open(&backend->lanes, &trying);
}

/* Carries out all effects but TELL. */
static void perform(struct rendezvous_backend *backend, const struct record_effects *effects) {
    for (size_t i = 0; i < effects->count; i++) {
        const struct record_effect *effect = &effects->items[i];
        switch (effect->kind) {
        case RECORD_EFFECT_OPEN:
            open_lanes(backend, effect);
            break;
        case RECORD_EFFECT_DROP:
            rendezvous_lanes_drop(&backend->lanes);
            break;
        case RECORD_EFFECT_RENEW_WAITER:
            rendezvous_lanes_renew_waiter(&backend->lanes);
            break;
        case RECORD_EFFECT_SEND:
            send(backend, &effect->send);
            break;
        case RECORD_EFFECT_TELL:
            break;
        }
    }
}

/* Carries out the effects of something that came from the loop, then calls the observer. */
static void carry_out(struct rendezvous_backend *backend, struct record_effects *effects_taken) {
    perform(backend, effects_taken);
    deliver_event(&backend->observer, effects_taken);
    record_effects_clear(effects_taken);
}

/* Carries out the effects of a call from outside. The observer is called after that call has
 * returned. */
static void carry_out_call(
    struct rendezvous_backend *backend, struct record_effects *effects_taken) {
    perform(backend, effects_taken);
    if (effects_taken->count > 0 &&
        effects_taken->items[effects_taken->count - 1].kind == RECORD_EFFECT_TELL) {
        record_effects_clear(&backend->undelivered);
        backend->undelivered = *effects_taken;
        event_timer_set(backend->timer, event_loop_now(backend->loop));
    } else {
        record_effects_clear(effects_taken);
    }
}

/* Calls from the loop. */

static bool has_memory_for(const struct store_reply *reply) {
    size_t length = reply->kind == STORE_REPLY_BLOB ? reply->blob.length : 0;
    return spare_memory_is_enough_for(length, RECORD_FACTOR);
}

static void answered(void *context, const struct store_client_result *result) {
    struct pending_call pending = *(struct pending_call *)context;
    struct record_effects effects = {0};
    free(context);
    if (result->code == FAILURE_NONE && !has_memory_for(result->reply)) {
        rendezvous_record_store_take_failure(pending.backend->store, pending.tag, FAILURE_SYSTEM,
            "there is no memory for the record", &effects);
    } else if (result->code == FAILURE_NONE) {
        rendezvous_record_store_take_reply(
            pending.backend->store, pending.tag, result->reply, &effects);
    } else {
        rendezvous_record_store_take_failure(
            pending.backend->store, pending.tag, result->code, result->message, &effects);
    }
    carry_out(pending.backend, &effects);
}

static void lanes_connected(void *context) {
    struct rendezvous_backend *backend = context;
    struct record_effects effects = {0};
    rendezvous_record_store_take_opened(backend->store, &effects);
    carry_out(backend, &effects);
}

static void lanes_unopened(void *context, const struct failure *failure) {
    struct rendezvous_backend *backend = context;
    struct record_effects effects = {0};
    rendezvous_record_store_take_unopened(backend->store, failure->code, failure->message,
        rendezvous_lanes_count(&backend->lanes) > 0, &effects);
    carry_out(backend, &effects);
}

static void lanes_doubted(void *context, bool is_doubted) {
    struct rendezvous_backend *backend = context;
    backend->observer.doubted(backend->observer.context, is_doubted);
}

static void lanes_held(void *context, int fd) {
    const struct rendezvous_backend *backend = context;
    backend->observer.held(backend->observer.context, fd);
}

static void lanes_ended(void *context, const struct failure *failure) {
    struct rendezvous_backend *backend = context;
    struct record_effects effects = {0};
    rendezvous_record_store_take_end(backend->store, failure->code, failure->message, &effects);
    carry_out(backend, &effects);
}

/* Requests of the machine. */

static void ask(struct rendezvous_backend *backend, struct rendezvous_effect asked) {
    struct record_effects effects = {0};
    rendezvous_record_store_ask(backend->store, &asked, &effects);
    carry_out_call(backend, &effects);
}

static void connect_to(struct rendezvous_backend *backend, const char *host, int port) {
    free(backend->lanes.host);
    backend->lanes.host = memory_duplicate_string(host);
    backend->lanes.port = port;
    drop_undelivered(backend);
    ask(backend, backend->connecting);
}

void rendezvous_backend_connect(
    struct rendezvous_backend *backend, const struct rendezvous_backend_trying *trying) {
    backend->connecting = (struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_CONNECT,
        .refusal_patience = trying->refusal_patience,
        .deadline = trying->deadline};
    connect_to(backend, trying->host, trying->port);
}

void rendezvous_backend_redirect(struct rendezvous_backend *backend, const char *host, int port) {
    if (!rendezvous_lanes_are_dropped(&backend->lanes)) {
        connect_to(backend, host, port);
    }
}

void rendezvous_backend_write_reached(const struct rendezvous_backend *backend, struct text *out) {
    text_append(out, text_string(&backend->lanes.reached));
}

void rendezvous_backend_write_address(const struct rendezvous_backend *backend, struct text *out) {
    const struct rendezvous_lanes *lanes = &backend->lanes;
    if (!rendezvous_lanes_are_dropped(lanes)) {
        store_access_write_address(lanes->accesses[RENDEZVOUS_LANE_ASKER], out);
    }
}

void rendezvous_backend_write_own(const struct rendezvous_backend *backend, struct text *out) {
    const struct rendezvous_lanes *lanes = &backend->lanes;
    if (!rendezvous_lanes_are_dropped(lanes)) {
        store_access_write_own(lanes->accesses[RENDEZVOUS_LANE_ASKER], out);
    }
}

void rendezvous_backend_write_obstacle(const struct rendezvous_backend *backend, struct text *out) {
    const struct rendezvous_lanes *lanes = &backend->lanes;
    if (!rendezvous_lanes_are_dropped(lanes)) {
        store_access_write_obstacle(lanes->accesses[RENDEZVOUS_LANE_ASKER], out);
    }
}

bool rendezvous_backend_is_at_agent(const struct rendezvous_backend *backend) {
    return rendezvous_record_store_is_agents(backend->store);
}

int rendezvous_backend_connections_needed(bool delegates) {
    return rendezvous_lanes_needed(delegates);
}

size_t rendezvous_backend_connection_count(const struct rendezvous_backend *backend) {
    const struct rendezvous_lanes *lanes = &backend->lanes;
    return rendezvous_lanes_are_dropped(lanes) ? 0 : rendezvous_lanes_count(lanes);
}

void rendezvous_backend_disconnect(struct rendezvous_backend *backend) {
    struct record_effects effects = {0};
    drop_undelivered(backend);
    rendezvous_record_store_disconnect(backend->store, &effects);
    carry_out_call(backend, &effects);
}

void rendezvous_backend_fetch(struct rendezvous_backend *backend) {
    ask(backend, (struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_FETCH});
}

void rendezvous_backend_write(
    struct rendezvous_backend *backend, const struct rendezvous_state *state, bool is_quiet) {
    ask(backend,
        (struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_WRITE, .write = {state, is_quiet}});
}

void rendezvous_backend_tell_watchers(struct rendezvous_backend *backend) {
    ask(backend, (struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_TELL_WATCHERS});
}

void rendezvous_backend_present(
    struct rendezvous_backend *backend, const struct rendezvous_effect *effect) {
    ask(backend, *effect);
}

void rendezvous_backend_beat(struct rendezvous_backend *backend) {
    ask(backend, (struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_BEAT});
}

void rendezvous_backend_count_finished(struct rendezvous_backend *backend, int64_t round) {
    ask(backend,
        (struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_COUNT_FINISHED, .round = round});
}

void rendezvous_backend_call_roll(struct rendezvous_backend *backend, int64_t round, int number) {
    ask(backend,
        (struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_CALL_ROLL, .roll = {round, number}});
}

void rendezvous_backend_answer_roll(struct rendezvous_backend *backend, int64_t round, int rank) {
    ask(backend,
        (struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_ANSWER_ROLL, .roll = {round, rank}});
}

void rendezvous_backend_delete(struct rendezvous_backend *backend, const char *key) {
    struct record_effects effects = {0};
    rendezvous_record_store_delete(backend->store, key, &effects);
    carry_out_call(backend, &effects);
}

void rendezvous_backend_cancel_waits(struct rendezvous_backend *backend) {
    struct record_effects effects = {0};
    rendezvous_record_store_cancel_waits(backend->store, &effects);
    carry_out_call(backend, &effects);
}

/* Requests of the caller's own. */

static bool send_users(struct rendezvous_backend *backend, enum rendezvous_lane lane,
    const struct store_client_call *call) {
    bool is_up = rendezvous_record_store_is_up(backend->store);
    if (is_up) {
        rendezvous_lanes_send(&backend->lanes, lane, call);
    }
    return is_up;
}

bool rendezvous_backend_ask(
    struct rendezvous_backend *backend, const struct store_client_call *call) {
    return send_users(backend, RENDEZVOUS_LANE_ASKER, call);
}

bool rendezvous_backend_wait(
    struct rendezvous_backend *backend, const struct store_client_call *call) {
    return send_users(backend, RENDEZVOUS_LANE_WAITER, call);
}

/* Creation and end. */

struct rendezvous_backend *rendezvous_backend_new(
    struct event_loop *loop, const struct rendezvous_backend_settings *settings) {
    struct rendezvous_backend *backend = memory_allocate(sizeof *backend);
    struct rendezvous_record_store_settings store = {
        .run_id = settings->run_id,
        .minimum_nodes = settings->minimum_nodes,
        .maximum_nodes = settings->maximum_nodes,
        .answer_timeout = settings->answer_timeout,
        .seed = random_seed(),
        .is_file = settings->path != NULL,
        .delegates = settings->delegates,
        .follows = settings->follows,
    };
    backend->loop = loop;
    backend->observer = settings->observer;
    backend->store = rendezvous_record_store_new(&store);
    backend->timer = event_timer_new(loop, timer_fired, backend);
    backend->lanes = (struct rendezvous_lanes){
        .loop = loop,
        .path = memory_duplicate_string(settings->path),
        .key = settings->key,
        .silence_timeout = settings->silence_timeout,
        .answer_timeout = settings->answer_timeout,
        .calm_after = settings->calm_after,
        .delegates = settings->delegates && settings->path == NULL,
        .connected = lanes_connected,
        .unopened = lanes_unopened,
        .ended = lanes_ended,
        .doubted = settings->observer.doubted != NULL ? lanes_doubted : NULL,
        .held = settings->observer.held != NULL ? lanes_held : NULL,
        .context = backend,
    };
    return backend;
}

void rendezvous_backend_free(struct rendezvous_backend *backend) {
    if (backend == NULL) {
        return;
    }
    rendezvous_backend_disconnect(backend);
    rendezvous_lanes_drop(&backend->lanes);
    event_timer_free(backend->timer);
    rendezvous_record_store_free(backend->store);
    free(backend->lanes.path);
    free(backend->lanes.host);
    free(backend);
}
