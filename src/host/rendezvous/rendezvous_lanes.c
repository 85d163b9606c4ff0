/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/rendezvous/rendezvous_lanes.h"

#include "core/store/connection_silence.h"
#include "wire/rendezvous/rendezvous_state_pickle.h"

/* Looks at the store's machine. */

static void look(void *context) {
    struct rendezvous_lanes *lanes = context;
    struct duration pause = store_access_look(lanes->accesses[RENDEZVOUS_LANE_ASKER]);
    if (pause.nanoseconds == DURATION_FOREVER.nanoseconds) {
        return; /* the lanes are dropped, or perhaps no longer there */
    }
    struct instant now = event_loop_now(lanes->loop);
    event_timer_set_between(lanes->look, instant_after(now, connection_silence_earliest(pause)),
        instant_after(now, pause));
}

/* Connections. */

static void begin_to_look(struct rendezvous_lanes *lanes) {
    if (lanes->path == NULL) {
        event_timer_set(lanes->look, event_loop_now(lanes->loop));
    }
}

static void lane_connected(void *context, const struct failure *failure) {
    struct rendezvous_lanes *lanes = context;
    if (failure != NULL) {
        lanes->unopened(lanes->context, failure);
    } else if (++lanes->connected_count == RENDEZVOUS_LANE_COUNT) {
        begin_to_look(lanes);
        lanes->connected(lanes->context);
    }
}

static void lane_lost(void *context, const struct failure *failure) {
    struct rendezvous_lanes *lanes = context;
    lanes->ended(lanes->context, failure);
}

static struct store_access *open_lane(struct rendezvous_lanes *lanes,
    const struct rendezvous_lanes_trying *trying,
    void (*connected)(void *context, const struct failure *failure)) {
    if (lanes->path != NULL) {
        struct file_store_settings settings = {
            .path = lanes->path,
            .connect_timeout = trying->patience,
            .connected = connected,
            .lost = lane_lost,
            .context = lanes,
        };
        return store_access_over_file(lanes->loop, &settings);
    }
    struct store_client_settings settings = {
        .host = lanes->host,
        .port = lanes->port,
        .key = lanes->key,
        .connect_timeout = trying->patience,
        .pause = trying->pause,
        .refusal_patience = trying->refusal_patience,
        .silence_timeout = lanes->silence_timeout,
        .is_watched = true,
        .limits = {RENDEZVOUS_STATE_TEXT_MAXIMUM, 2 * RENDEZVOUS_STATE_TEXT_MAXIMUM},
        .connected = connected,
        .lost = lane_lost,
        .context = lanes,
    };
    return store_access_over_tcp(lanes->loop, &settings);
}

void rendezvous_lanes_open(
    struct rendezvous_lanes *lanes, const struct rendezvous_lanes_trying *trying) {
    rendezvous_lanes_drop(lanes);
    lanes->look = event_timer_new(lanes->loop, look, lanes);
    for (int lane = 0; lane < RENDEZVOUS_LANE_COUNT; lane++) {
        lanes->accesses[lane] = open_lane(lanes, trying, lane_connected);
    }
}

void rendezvous_lanes_drop(struct rendezvous_lanes *lanes) {
    lanes->connected_count = 0;
    event_timer_free(lanes->look);
    lanes->look = NULL;
    for (int lane = 0; lane < RENDEZVOUS_LANE_COUNT; lane++) {
        struct store_access *access = lanes->accesses[lane];
        lanes->accesses[lane] = NULL;
        store_access_free(access);
    }
}

bool rendezvous_lanes_are_dropped(const struct rendezvous_lanes *lanes) {
    return lanes->accesses[RENDEZVOUS_LANE_ASKER] == NULL;
}

void rendezvous_lanes_send(struct rendezvous_lanes *lanes, enum rendezvous_lane lane,
    const struct store_client_call *call) {
    if (lanes->accesses[lane] != NULL) {
        store_access_send(lanes->accesses[lane], call);
    }
}

static void waiter_connected(void *context, const struct failure *failure) {
    if (failure != NULL) {
        lane_lost(context, failure);
    }
}

void rendezvous_lanes_renew_waiter(struct rendezvous_lanes *lanes) {
    struct store_access *waiter = lanes->accesses[RENDEZVOUS_LANE_WAITER];
    if (waiter == NULL) {
        return;
    }
    struct rendezvous_lanes_trying trying = {.patience = lanes->answer_timeout};
    lanes->accesses[RENDEZVOUS_LANE_WAITER] = open_lane(lanes, &trying, waiter_connected);
    store_access_free(waiter);
}
