/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/rendezvous/rendezvous_lanes.h"

#include "wire/rendezvous/rendezvous_state_pickle.h"

static void lane_connected(void *context, const struct failure *failure) {
    struct rendezvous_lanes *lanes = context;
    if (failure != NULL) {
        lanes->ended(lanes->context, failure);
    } else if (++lanes->connected_count == RENDEZVOUS_LANE_COUNT) {
        lanes->connected(lanes->context);
    }
}

static void lane_lost(void *context, const struct failure *failure) {
    struct rendezvous_lanes *lanes = context;
    lanes->ended(lanes->context, failure);
}

static struct store_access *open_lane(struct rendezvous_lanes *lanes, struct duration patience,
    struct duration refusal_patience,
    void (*connected)(void *context, const struct failure *failure)) {
    if (lanes->path != NULL) {
        struct file_store_settings settings = {
            .path = lanes->path,
            .connect_timeout = patience,
            .connected = connected,
            .lost = lane_lost,
            .context = lanes,
        };
        return store_access_over_file(lanes->loop, &settings);
    }
    struct store_client_settings settings = {
        .host = lanes->host,
        .port = lanes->port,
        .connect_timeout = patience,
        .refusal_patience = refusal_patience,
        .silence_timeout = lanes->silence_timeout,
        .limits = {RENDEZVOUS_STATE_TEXT_MAXIMUM, 2 * RENDEZVOUS_STATE_TEXT_MAXIMUM},
        .connected = connected,
        .lost = lane_lost,
        .context = lanes,
    };
    return store_access_over_tcp(lanes->loop, &settings);
}

void rendezvous_lanes_open(
    struct rendezvous_lanes *lanes, struct duration patience, struct duration refusal_patience) {
    rendezvous_lanes_drop(lanes);
    for (int lane = 0; lane < RENDEZVOUS_LANE_COUNT; lane++) {
        lanes->accesses[lane] = open_lane(lanes, patience, refusal_patience, lane_connected);
    }
}

void rendezvous_lanes_drop(struct rendezvous_lanes *lanes) {
    lanes->connected_count = 0;
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
    lanes->accesses[RENDEZVOUS_LANE_WAITER] =
        open_lane(lanes, lanes->answer_timeout, (struct duration){0}, waiter_connected);
    store_access_free(waiter);
}
