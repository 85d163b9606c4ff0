/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous/record_connection.h"

/* torchrun's nodes do not announce what they write, so the record is polled at this interval. */
#define POLL_INTERVAL_SECONDS 1
#define RETRY_FIRST_MILLISECONDS 1
#define RETRY_DOUBLINGS_MAXIMUM 6
#define RETRY_LONGEST_SECONDS 5
/* How often a node says that it still waits for a store which it has lost. It is longer than a
 * machine that refuses every connection is tried. */
#define SAYING_INTERVAL_SECONDS 6

/* Of the numbers from which rounds are counted. The largest fits into what is read from a store,
 * and that two records draw the same one is a matter of one in a million. */
#define BASE_STEP 1000
#define BASES (UINT64_C(1) << 20)

void record_connection_init(struct record_connection *connection, uint64_t seed) {
    *connection = (struct record_connection){.phase = RECORD_CONNECTION_CLOSED};
    random_init(&connection->random, seed);
}

bool record_connection_is_open(const struct record_connection *connection) {
    return connection->phase >= RECORD_CONNECTION_READY;
}

bool record_connection_is_fetching(const struct record_connection *connection) {
    return connection->phase == RECORD_CONNECTION_FETCHING;
}

bool record_connection_is_writing(const struct record_connection *connection) {
    return connection->phase == RECORD_CONNECTION_WRITING ||
           connection->phase == RECORD_CONNECTION_WRITING_HEARTBEATS;
}

bool record_connection_is_pausing(const struct record_connection *connection) {
    return connection->retry_at.is_set;
}

/* Connections. */

void record_connection_connect(struct record_connection *connection) {
    connection->phase = RECORD_CONNECTION_CONNECTING;
}

bool record_connection_open(struct record_connection *connection, bool has_presence, bool is_host,
    struct instant now, struct duration keep_alive_interval) {
    if (connection->phase != RECORD_CONNECTION_CONNECTING) {
        return false;
    }
    connection->phase = RECORD_CONNECTION_READY;
    connection->was_open = true;
    connection->has_presence = has_presence;
    connection->is_host = is_host;
    connection->is_refetch_wanted = true;
    connection->has_untold_news = false;
    connection->lost_writes = 0;
    moment_clear(&connection->retry_at);
    moment_set_after(&connection->beat_at, now, keep_alive_interval);
    moment_set_after(&connection->heartbeat_at, now, keep_alive_interval);
    return true;
}

bool record_connection_close(struct record_connection *connection) {
    bool was_open = record_connection_is_open(connection);
    connection->phase = RECORD_CONNECTION_CLOSED;
    return was_open;
}

void record_connection_connect_again(
    struct record_connection *connection, struct instant now, struct instant given_up_at) {
    connection->phase = RECORD_CONNECTION_CONNECTING;
    connection->lost_at = now;
    connection->given_up_at = given_up_at;
    moment_set_after(&connection->said_at, now, duration_from_seconds(SAYING_INTERVAL_SECONDS));
}

bool record_connection_says_lost(struct record_connection *connection, struct instant now) {
    if (connection->phase != RECORD_CONNECTION_CONNECTING ||
        !moment_has_come(&connection->said_at, now)) {
        return false;
    }
    moment_set_after(&connection->said_at, now, duration_from_seconds(SAYING_INTERVAL_SECONDS));
    return instant_is_before(now, connection->given_up_at);
}

int64_t record_connection_draw_local_id(struct record_connection *connection) {
    return node_identity_muster_local_id((uint32_t)random_next(&connection->random));
}

int64_t record_connection_draw_base(struct record_connection *connection) {
    return BASE_STEP * (1 + (int64_t)random_below(&connection->random, BASES));
}

/* Requests. */

void record_connection_fetch(struct record_connection *connection, struct instant now) {
    connection->phase = RECORD_CONNECTION_FETCHING;
    connection->is_refetch_wanted = false;
    moment_set_after(&connection->poll_at, now, duration_from_seconds(POLL_INTERVAL_SECONDS));
}

void record_connection_skip_fetch(struct record_connection *connection) {
    connection->is_refetch_wanted = false;
}

void record_connection_write(
    struct record_connection *connection, bool is_heartbeats, struct instant now) {
    connection->phase =
        is_heartbeats ? RECORD_CONNECTION_WRITING_HEARTBEATS : RECORD_CONNECTION_WRITING;
    connection->write_began = now;
}

bool record_connection_end_fetch(struct record_connection *connection) {
    bool is_to_be_told = connection->has_untold_news && !connection->is_change_told;
    connection->phase = RECORD_CONNECTION_READY;
    connection->has_untold_news = false;
    connection->is_change_told = connection->is_refetch_wanted && connection->is_change_told;
    return is_to_be_told;
}

void record_connection_win_write(struct record_connection *connection, struct instant now,
    struct duration heartbeat_interval, struct duration keep_alive_interval) {
    if (connection->phase == RECORD_CONNECTION_WRITING_HEARTBEATS) {
        moment_set_after(&connection->heartbeat_at, now, heartbeat_interval);
    } else if (connection->heartbeat_at.is_set) {
        moment_set(&connection->heartbeat_at,
            instant_earlier(connection->heartbeat_at.at, instant_after(now, keep_alive_interval)));
    }
    connection->phase = RECORD_CONNECTION_READY;
    connection->lost_writes = 0;
    moment_clear(&connection->retry_at);
}

static int64_t within(int64_t value, int64_t least, int64_t most) {
    if (value < least) {
        return least;
    }
    return value < most ? value : most;
}

/* A node that loses its writes again and again pauses longer each time. The pause is random and
 * grows with the time that a write takes, since all nodes that lost to the same write learn of it
 * at the same time. */
static void pause_after_lost_write(struct record_connection *connection, struct instant now) {
    int doublings = connection->lost_writes++ - 1;
    if (doublings < 0) {
        return;
    }
    if (doublings > RETRY_DOUBLINGS_MAXIMUM) {
        doublings = RETRY_DOUBLINGS_MAXIMUM;
    }
    int64_t least = duration_from_milliseconds(RETRY_FIRST_MILLISECONDS).nanoseconds;
    int64_t most = duration_from_seconds(RETRY_LONGEST_SECONDS).nanoseconds;
    int64_t taken = instant_until(connection->write_began, now).nanoseconds;
    int64_t range = within(within(taken / 2, least, most) << doublings, least, most);
    struct duration delay = {1 + (int64_t)random_below(&connection->random, (uint64_t)range)};
    moment_set_after(&connection->retry_at, now, delay);
}

void record_connection_lose_write(struct record_connection *connection, struct instant now) {
    connection->phase = RECORD_CONNECTION_READY;
    moment_clear(&connection->retry_at);
    if (connection->has_untold_news) { /* the writer may still announce it */
        moment_set_after(&connection->poll_at, now, duration_from_seconds(POLL_INTERVAL_SECONDS));
    }
    pause_after_lost_write(connection, now);
}

/* News. */

void record_connection_note_change(struct record_connection *connection, bool is_told) {
    connection->is_refetch_wanted = true;
    connection->is_change_told = connection->is_change_told || is_told;
}

void record_connection_note_news(struct record_connection *connection) {
    connection->has_untold_news = true;
}

/* Time. */

void record_connection_end_pause(struct record_connection *connection, struct instant now) {
    if (moment_has_come(&connection->retry_at, now)) {
        moment_clear(&connection->retry_at);
        connection->is_refetch_wanted = true;
    }
}

bool record_connection_beat(
    struct record_connection *connection, struct instant now, struct duration keep_alive_interval) {
    if (!record_connection_is_open(connection) || !moment_has_come(&connection->beat_at, now)) {
        return false;
    }
    moment_set_after(&connection->beat_at, now, keep_alive_interval);
    return true;
}

bool record_connection_is_heartbeat_due(
    const struct record_connection *connection, struct instant now) {
    return moment_has_come(&connection->heartbeat_at, now);
}

void record_connection_put_off_heartbeat(
    struct record_connection *connection, struct instant now, struct duration keep_alive_interval) {
    moment_set_after(&connection->heartbeat_at, now, keep_alive_interval);
}

/* Where presence is served, the host of the store notices each write of torchrun's nodes and tells
 * the watchers. But the host may end before the other nodes, so all nodes poll once a node of
 * torchrun is in the record. Without presence no node notices such writes, so all nodes poll. A
 * node that has seen a change which was perhaps not announced fetches the record once more before
 * it tells the watchers. */
bool record_connection_is_poll_due(
    const struct record_connection *connection, bool has_strangers, struct instant now) {
    bool wants_poll = !connection->has_presence || connection->has_untold_news || has_strangers;
    return connection->phase == RECORD_CONNECTION_READY && wants_poll &&
           moment_has_come(&connection->poll_at, now);
}

void record_connection_wake(
    const struct record_connection *connection, struct instant now, struct moment *next) {
    if (!record_connection_is_open(connection)) {
        if (connection->phase == RECORD_CONNECTION_CONNECTING) {
            moment_wake(&connection->said_at, now, next);
        }
        return;
    }
    moment_wake(&connection->beat_at, now, next);
    moment_wake(&connection->retry_at, now, next);
    moment_wake(&connection->heartbeat_at, now, next);
    moment_wake(&connection->poll_at, now, next);
}

/* Patience. */

/* How long after the join deadline torchrun's rules still take a node out of the record. */
#define ROLLBACK_SECONDS 5

void rendezvous_patience_begin(
    struct rendezvous_patience *patience, struct instant now, struct duration join_timeout) {
    if (!patience->join_deadline.is_set) {
        rendezvous_patience_prolong(patience, now, join_timeout);
    }
}

void rendezvous_patience_prolong(
    struct rendezvous_patience *patience, struct instant now, struct duration join_timeout) {
    moment_set_after(&patience->join_deadline, now, join_timeout);
    moment_clear(&patience->rollback_deadline);
}

void rendezvous_patience_end(struct rendezvous_patience *patience) {
    moment_clear(&patience->join_deadline);
}

bool rendezvous_patience_is_late(
    struct rendezvous_patience *patience, size_t participants, struct instant now) {
    bool is_late = moment_has_come(&patience->join_deadline, now);
    if (is_late && !patience->rollback_deadline.is_set) {
        patience->size_when_late = participants;
        moment_set_after(
            &patience->rollback_deadline, now, duration_from_seconds(ROLLBACK_SECONDS));
    }
    return is_late;
}

void rendezvous_patience_count_again(struct rendezvous_patience *patience) {
    moment_clear(&patience->rollback_deadline);
}

bool rendezvous_patience_is_too_late(
    const struct rendezvous_patience *patience, struct instant now) {
    return moment_has_come(&patience->join_deadline, now) &&
           moment_has_come(&patience->rollback_deadline, now);
}

bool rendezvous_patience_is_last_call_over(struct rendezvous_patience *patience,
    const struct rendezvous_state *seen, struct instant now, struct duration last_call_timeout) {
    if (seen->is_complete || !seen->has_deadline) {
        moment_clear(&patience->last_call);
        return false;
    }
    if (!patience->last_call.is_set || patience->last_call_round != seen->round ||
        patience->last_call_deadline.nanoseconds != seen->deadline.nanoseconds) {
        patience->last_call_round = seen->round;
        patience->last_call_deadline = seen->deadline;
        moment_set_after(&patience->last_call, now, last_call_timeout);
    }
    return moment_has_come(&patience->last_call, now);
}

void rendezvous_patience_begin_end(
    struct rendezvous_patience *patience, struct instant now, struct duration close_timeout) {
    moment_set_after(&patience->settle_deadline, now, close_timeout);
}

bool rendezvous_patience_has_ended(const struct rendezvous_patience *patience, struct instant now) {
    return moment_has_come(&patience->settle_deadline, now);
}

void rendezvous_patience_wake(
    const struct rendezvous_patience *patience, struct instant now, struct moment *next) {
    moment_wake(&patience->settle_deadline, now, next);
    moment_wake(&patience->last_call, now, next);
    moment_wake(&patience->join_deadline, now, next);
    moment_wake(&patience->rollback_deadline, now, next);
}
