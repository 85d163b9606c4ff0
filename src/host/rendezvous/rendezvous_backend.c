/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/rendezvous/rendezvous_backend.h"

#include <stdlib.h>
#include <sys/socket.h>

#include "base/memory.h"
#include "core/store/store_request.h"
#include "host/loop/clock.h"
#include "wire/rendezvous/rendezvous_record_store.h"
#include "wire/rendezvous/rendezvous_state_pickle.h"

/* The connections (lanes) of one node to the store that keeps its job's record. One carries
 * requests that the store answers at once, one waits until the record changes, one waits for keys
 * of other nodes; those two may be opened when they are needed. If one connection is lost, all are
 * dropped. Whether the store's machine is silent is judged by the first one alone, over which a
 * sign of life goes every second: TCP sends data again until it is acknowledged, while of its own
 * probes the first ones that are lost count. Where the connection is calm, no sign need go. */

struct rendezvous_lanes {
    struct event_loop *loop;
    char *path; /* path of a FileStore; NULL: a TCPStore at host and port */
    char *host; /* where the lanes are, or are to be opened next */
    int port;
    /* The address, of those of the host, to which the first lane is connected; empty: to none, or
     * it is not known. */
    struct text reached;
    const struct store_key *key; /* or NULL */
    struct duration silence_timeout;
    struct duration answer_timeout;
    /* A node that delegates does not watch the record, and waits for keys in few rounds only, and
     * there may be thousands of such nodes. So each lane but the first is opened when it is used.
     */
    bool delegates;
    struct duration calm_after; /* of the first lane; see store_client_settings */
    struct store_access
        *accesses[RENDEZVOUS_LANE_COUNT]; /* all are NULL while the lanes are dropped */
    bool is_connected[RENDEZVOUS_LANE_COUNT];
    struct event_timer *look;         /* NULL while the lanes are dropped */
    struct instant looked_at;         /* the last look; a sign of life went then */
    bool is_doubted;                  /* nothing was heard since that sign */
    bool is_held;                     /* `held` was called with its socket */
    void (*connected)(void *context); /* all with which a node begins are connected */
    /* The first lane that could not connect, or that ended; the lanes are not dropped yet. */
    void (*unopened)(void *context, const struct failure *failure);
    void (*ended)(void *context, const struct failure *failure);
    /* A sign of life is not acknowledged, or something is heard again. It is known sooner than by
     * looks that are a second apart, so these are half a second apart. NULL: nobody asks. */
    void (*doubted)(void *context, bool is_doubted);
    /* The socket of the first lane, once all are connected; -1: it is shut down, and about to be
     * closed. NULL: nobody asks. */
    void (*held)(void *context, int fd);
    void *context;
};

/* How the lanes are to be opened; see store_client_settings. */
struct rendezvous_lanes_trying {
    struct duration pause; /* before the first attempt */
    struct duration patience;
    struct duration refusal_patience;
};

/* Looks at the store's machine. */

#define DOUBTING_LOOK_MILLISECONDS 500
/* What the silence is measured too roughly, or an acknowledgement may be under way. */
#define DOUBT_SLACK_MILLISECONDS 50

/* Whether nothing was heard since the look before, which has sent a sign of life. The first look
 * has none before it. */
static void doubt(struct rendezvous_lanes *lanes, struct duration silent_for, struct instant now) {
    struct duration slack = duration_from_milliseconds(DOUBT_SLACK_MILLISECONDS);
    struct duration usual = instant_until(lanes->looked_at, instant_after(now, slack));
    bool is_doubted =
        lanes->looked_at.nanoseconds > 0 && silent_for.nanoseconds > usual.nanoseconds;
    lanes->looked_at = now;
    if (lanes->doubted != NULL && is_doubted != lanes->is_doubted) {
        lanes->is_doubted = is_doubted;
        lanes->doubted(lanes->context, is_doubted);
    }
}

static void look(void *context) {
    struct rendezvous_lanes *lanes = context;
    struct instant now = event_loop_now(lanes->loop);
    struct duration silent_for = lanes->doubted == NULL
                                     ? (struct duration){0}
                                     : store_access_silence(lanes->accesses[RENDEZVOUS_LANE_ASKER]);
    struct duration pause = store_access_look(lanes->accesses[RENDEZVOUS_LANE_ASKER]);
    if (pause.nanoseconds == DURATION_FOREVER.nanoseconds) {
        return; /* the lanes are dropped, or perhaps no longer there */
    }
    doubt(lanes, silent_for, now);
    if (lanes->doubted != NULL) {
        int64_t longest = duration_from_milliseconds(DOUBTING_LOOK_MILLISECONDS).nanoseconds;
        pause.nanoseconds = pause.nanoseconds < longest ? pause.nanoseconds : longest;
    }
    event_timer_set_between(lanes->look, instant_after(now, connection_silence_earliest(pause)),
        instant_after(now, pause));
}

/* Connections. */

static void begin_to_look(struct rendezvous_lanes *lanes) {
    if (lanes->path == NULL) {
        event_timer_set(lanes->look, event_loop_now(lanes->loop));
    }
}

/* Whoever holds the first lane's socket, too. */

static void hand_over(struct rendezvous_lanes *lanes) {
    int fd = store_access_descriptor(lanes->accesses[RENDEZVOUS_LANE_ASKER]);
    if (lanes->held != NULL && fd != -1) {
        lanes->is_held = true;
        lanes->held(lanes->context, fd);
    }
}

/* Closing it does not end the connection as long as somebody else holds it. */
static void take_back(struct rendezvous_lanes *lanes) {
    if (lanes->is_held) {
        int fd = store_access_descriptor(lanes->accesses[RENDEZVOUS_LANE_ASKER]);
        if (fd != -1) {
            (void)shutdown(fd, SHUT_RDWR);
        }
        lanes->is_held = false;
        lanes->held(lanes->context, -1);
    }
}

/* With how many a node begins. */
static int rendezvous_lanes_needed(bool delegates) {
    return delegates ? 1 : RENDEZVOUS_LANE_COUNT;
}

static int count_at_first(const struct rendezvous_lanes *lanes) {
    return rendezvous_lanes_needed(lanes->delegates);
}

/* How many are connected. */
static size_t rendezvous_lanes_count(const struct rendezvous_lanes *lanes) {
    size_t count = 0;
    for (int lane = 0; lane < RENDEZVOUS_LANE_COUNT; lane++) {
        count += lanes->is_connected[lane] ? 1 : 0;
    }
    return count;
}

static void note_reached(struct rendezvous_lanes *lanes) {
    text_clear(&lanes->reached);
    store_access_write_server(lanes->accesses[RENDEZVOUS_LANE_ASKER], &lanes->reached);
}

static void first_lane_connected(struct rendezvous_lanes *lanes, const struct failure *failure) {
    if (failure != NULL) {
        lanes->unopened(lanes->context, failure);
    } else if ((int)rendezvous_lanes_count(lanes) == count_at_first(lanes)) {
        begin_to_look(lanes);
        note_reached(lanes);
        hand_over(lanes);
        lanes->connected(lanes->context);
    }
}

static void lane_lost(void *context, const struct failure *failure) {
    struct rendezvous_lanes *lanes = context;
    lanes->ended(lanes->context, failure);
}

static void lane_connected(
    struct rendezvous_lanes *lanes, enum rendezvous_lane lane, const struct failure *failure) {
    bool is_late = (int)lane >= count_at_first(lanes);
    lanes->is_connected[lane] = failure == NULL;
    if (!is_late) {
        first_lane_connected(lanes, failure);
    } else if (failure != NULL) {
        lane_lost(lanes, failure);
    }
}

static void asker_connected(void *context, const struct failure *failure) {
    lane_connected(context, RENDEZVOUS_LANE_ASKER, failure);
}

static void watcher_connected(void *context, const struct failure *failure) {
    lane_connected(context, RENDEZVOUS_LANE_WATCHER, failure);
}

static void waiter_connected(void *context, const struct failure *failure) {
    lane_connected(context, RENDEZVOUS_LANE_WAITER, failure);
}

static void (*const connected[RENDEZVOUS_LANE_COUNT])(
    void *context, const struct failure *failure) = {
    [RENDEZVOUS_LANE_ASKER] = asker_connected,
    [RENDEZVOUS_LANE_WATCHER] = watcher_connected,
    [RENDEZVOUS_LANE_WAITER] = waiter_connected,
};

static struct store_access *open_lane(
    struct rendezvous_lanes *lanes, int lane, const struct rendezvous_lanes_trying *trying) {
    if (lanes->path != NULL) {
        struct file_store_settings settings = {
            .path = lanes->path,
            .connect_timeout = trying->patience,
            .connected = connected[lane],
            .lost = lane_lost,
            .context = lanes,
        };
        return store_access_over_file(lanes->loop, &settings);
    }
    struct store_client_settings settings = {
        .host = lanes->reached.length > 0 ? text_string(&lanes->reached) : lanes->host,
        .port = lanes->port,
        .key = lanes->key,
        .connect_timeout = trying->patience,
        .pause = trying->pause,
        .refusal_patience = trying->refusal_patience,
        .silence_timeout = lanes->silence_timeout,
        .is_watched = true,
        .calm_after = lanes->doubted == NULL ? lanes->calm_after : (struct duration){0},
        .limits = {RENDEZVOUS_STATE_TEXT_MAXIMUM, 2 * RENDEZVOUS_STATE_TEXT_MAXIMUM},
        .connected = connected[lane],
        .lost = lane_lost,
        .context = lanes,
    };
    return store_access_over_tcp(lanes->loop, &settings);
}

/* Requests under way are answered with FAILURE_CANCELLED before this returns. */
static void rendezvous_lanes_drop(struct rendezvous_lanes *lanes) {
    take_back(lanes);
    text_clear(&lanes->reached);
    lanes->looked_at = (struct instant){0};
    lanes->is_doubted = false;
    event_timer_free(lanes->look);
    lanes->look = NULL;
    for (int lane = 0; lane < RENDEZVOUS_LANE_COUNT; lane++) {
        struct store_access *access = lanes->accesses[lane];
        lanes->accesses[lane] = NULL;
        lanes->is_connected[lane] = false;
        store_access_free(access);
    }
}

/* Drops earlier connections first. */
static void rendezvous_lanes_open(
    struct rendezvous_lanes *lanes, const struct rendezvous_lanes_trying *trying) {
    rendezvous_lanes_drop(lanes);
    lanes->look = event_timer_new(lanes->loop, look, lanes);
    for (int lane = 0; lane < count_at_first(lanes); lane++) {
        lanes->accesses[lane] = open_lane(lanes, lane, trying);
    }
}

static bool rendezvous_lanes_are_dropped(const struct rendezvous_lanes *lanes) {
    return lanes->accesses[RENDEZVOUS_LANE_ASKER] == NULL;
}

/* Does nothing where it is open, or all are dropped. */
static void open_late(struct rendezvous_lanes *lanes, enum rendezvous_lane lane) {
    const struct rendezvous_lanes_trying trying = {.patience = lanes->answer_timeout};
    if (lanes->accesses[lane] == NULL && !rendezvous_lanes_are_dropped(lanes)) {
        lanes->accesses[lane] = open_lane(lanes, (int)lane, &trying);
    }
}

/* Does nothing while the lanes are dropped. */
static void rendezvous_lanes_send(struct rendezvous_lanes *lanes, enum rendezvous_lane lane,
    const struct store_client_call *call) {
    open_late(lanes, lane);
    if (lanes->accesses[lane] != NULL) {
        store_access_send(lanes->accesses[lane], call);
    }
}

/* Cancels what the waiter lane waits for, by a new connection: only so can an old wait's answer be
 * told from a new one's. */
static void rendezvous_lanes_renew_waiter(struct rendezvous_lanes *lanes) {
    struct store_access *waiter = lanes->accesses[RENDEZVOUS_LANE_WAITER];
    if (waiter == NULL) {
        return;
    }
    lanes->accesses[RENDEZVOUS_LANE_WAITER] = NULL;
    lanes->is_connected[RENDEZVOUS_LANE_WAITER] = false;
    store_access_free(waiter);
    if (!lanes->delegates) {
        open_late(lanes, RENDEZVOUS_LANE_WAITER);
    }
}

/* Backend. */

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

static void backend_send(struct rendezvous_backend *backend, const struct record_sending *sending) {
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
            backend_send(backend, &effect->send);
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

bool rendezvous_backend_find_store(
    const struct rendezvous_backend *backend, const char **out_host, int *out_port) {
    *out_host = backend->lanes.host;
    *out_port = backend->lanes.port;
    return backend->lanes.path == NULL && rendezvous_backend_connection_count(backend) > 0;
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
