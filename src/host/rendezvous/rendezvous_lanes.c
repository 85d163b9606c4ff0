/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/rendezvous/rendezvous_lanes.h"

#include <sys/socket.h>

#include "core/store/connection_silence.h"
#include "wire/rendezvous/rendezvous_state_pickle.h"

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

int rendezvous_lanes_needed(bool delegates) {
    return delegates ? 1 : RENDEZVOUS_LANE_COUNT;
}

static int count_at_first(const struct rendezvous_lanes *lanes) {
    return rendezvous_lanes_needed(lanes->delegates);
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

void rendezvous_lanes_open(
    struct rendezvous_lanes *lanes, const struct rendezvous_lanes_trying *trying) {
    rendezvous_lanes_drop(lanes);
    lanes->look = event_timer_new(lanes->loop, look, lanes);
    for (int lane = 0; lane < count_at_first(lanes); lane++) {
        lanes->accesses[lane] = open_lane(lanes, lane, trying);
    }
}

void rendezvous_lanes_drop(struct rendezvous_lanes *lanes) {
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

size_t rendezvous_lanes_count(const struct rendezvous_lanes *lanes) {
    size_t count = 0;
    for (int lane = 0; lane < RENDEZVOUS_LANE_COUNT; lane++) {
        count += lanes->is_connected[lane] ? 1 : 0;
    }
    return count;
}

bool rendezvous_lanes_are_dropped(const struct rendezvous_lanes *lanes) {
    return lanes->accesses[RENDEZVOUS_LANE_ASKER] == NULL;
}

/* Does nothing where it is open, or all are dropped. */
static void open_late(struct rendezvous_lanes *lanes, enum rendezvous_lane lane) {
    const struct rendezvous_lanes_trying trying = {.patience = lanes->answer_timeout};
    if (lanes->accesses[lane] == NULL && !rendezvous_lanes_are_dropped(lanes)) {
        lanes->accesses[lane] = open_lane(lanes, (int)lane, &trying);
    }
}

void rendezvous_lanes_send(struct rendezvous_lanes *lanes, enum rendezvous_lane lane,
    const struct store_client_call *call) {
    open_late(lanes, lane);
    if (lanes->accesses[lane] != NULL) {
        store_access_send(lanes->accesses[lane], call);
    }
}

void rendezvous_lanes_renew_waiter(struct rendezvous_lanes *lanes) {
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
