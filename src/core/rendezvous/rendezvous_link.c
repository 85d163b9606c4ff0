/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous/rendezvous_link.h"

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

void rendezvous_link_init(struct rendezvous_link *link, uint64_t seed) {
    *link = (struct rendezvous_link){.phase = RENDEZVOUS_LINK_CLOSED};
    random_init(&link->random, seed);
}

bool rendezvous_link_is_open(const struct rendezvous_link *link) {
    return link->phase >= RENDEZVOUS_LINK_READY;
}

bool rendezvous_link_is_fetching(const struct rendezvous_link *link) {
    return link->phase == RENDEZVOUS_LINK_FETCHING;
}

bool rendezvous_link_is_writing(const struct rendezvous_link *link) {
    return link->phase == RENDEZVOUS_LINK_WRITING ||
           link->phase == RENDEZVOUS_LINK_WRITING_HEARTBEATS;
}

bool rendezvous_link_is_pausing(const struct rendezvous_link *link) {
    return link->retry_at.is_set;
}

/* Connections. */

void rendezvous_link_connect(struct rendezvous_link *link) {
    link->phase = RENDEZVOUS_LINK_CONNECTING;
}

bool rendezvous_link_open(struct rendezvous_link *link, bool has_presence, bool is_host,
    struct instant now, struct duration keep_alive_interval) {
    if (link->phase != RENDEZVOUS_LINK_CONNECTING) {
        return false;
    }
    link->phase = RENDEZVOUS_LINK_READY;
    link->was_open = true;
    link->has_presence = has_presence;
    link->is_host = is_host;
    link->is_refetch_wanted = true;
    link->has_untold_news = false;
    link->lost_writes = 0;
    moment_clear(&link->retry_at);
    moment_set_after(&link->beat_at, now, keep_alive_interval);
    moment_set_after(&link->heartbeat_at, now, keep_alive_interval);
    return true;
}

bool rendezvous_link_close(struct rendezvous_link *link) {
    bool was_open = rendezvous_link_is_open(link);
    link->phase = RENDEZVOUS_LINK_CLOSED;
    return was_open;
}

void rendezvous_link_connect_again(
    struct rendezvous_link *link, struct instant now, struct instant given_up_at) {
    link->phase = RENDEZVOUS_LINK_CONNECTING;
    link->lost_at = now;
    link->given_up_at = given_up_at;
    moment_set_after(&link->said_at, now, duration_from_seconds(SAYING_INTERVAL_SECONDS));
}

bool rendezvous_link_says_lost(struct rendezvous_link *link, struct instant now) {
    if (link->phase != RENDEZVOUS_LINK_CONNECTING || !moment_has_come(&link->said_at, now)) {
        return false;
    }
    moment_set_after(&link->said_at, now, duration_from_seconds(SAYING_INTERVAL_SECONDS));
    return instant_is_before(now, link->given_up_at);
}

int64_t rendezvous_link_draw_local_id(struct rendezvous_link *link) {
    return node_identity_muster_local_id((uint32_t)random_next(&link->random));
}

int64_t rendezvous_link_draw_base(struct rendezvous_link *link) {
    return BASE_STEP * (1 + (int64_t)random_below(&link->random, BASES));
}

/* Requests. */

void rendezvous_link_fetch(struct rendezvous_link *link, struct instant now) {
    link->phase = RENDEZVOUS_LINK_FETCHING;
    link->is_refetch_wanted = false;
    moment_set_after(&link->poll_at, now, duration_from_seconds(POLL_INTERVAL_SECONDS));
}

void rendezvous_link_skip_fetch(struct rendezvous_link *link) {
    link->is_refetch_wanted = false;
}

void rendezvous_link_write(struct rendezvous_link *link, bool is_heartbeats, struct instant now) {
    link->phase = is_heartbeats ? RENDEZVOUS_LINK_WRITING_HEARTBEATS : RENDEZVOUS_LINK_WRITING;
    link->write_began = now;
}

bool rendezvous_link_end_fetch(struct rendezvous_link *link) {
    bool is_to_be_told = link->has_untold_news && !link->is_change_told;
    link->phase = RENDEZVOUS_LINK_READY;
    link->has_untold_news = false;
    link->is_change_told = link->is_refetch_wanted && link->is_change_told;
    return is_to_be_told;
}

void rendezvous_link_win_write(struct rendezvous_link *link, struct instant now,
    struct duration heartbeat_interval, struct duration keep_alive_interval) {
    if (link->phase == RENDEZVOUS_LINK_WRITING_HEARTBEATS) {
        moment_set_after(&link->heartbeat_at, now, heartbeat_interval);
    } else if (link->heartbeat_at.is_set) {
        moment_set(&link->heartbeat_at,
            instant_earlier(link->heartbeat_at.at, instant_after(now, keep_alive_interval)));
    }
    link->phase = RENDEZVOUS_LINK_READY;
    link->lost_writes = 0;
    moment_clear(&link->retry_at);
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
static void pause_after_lost_write(struct rendezvous_link *link, struct instant now) {
    int doublings = link->lost_writes++ - 1;
    if (doublings < 0) {
        return;
    }
    if (doublings > RETRY_DOUBLINGS_MAXIMUM) {
        doublings = RETRY_DOUBLINGS_MAXIMUM;
    }
    int64_t least = duration_from_milliseconds(RETRY_FIRST_MILLISECONDS).nanoseconds;
    int64_t most = duration_from_seconds(RETRY_LONGEST_SECONDS).nanoseconds;
    int64_t taken = instant_until(link->write_began, now).nanoseconds;
    int64_t range = within(within(taken / 2, least, most) << doublings, least, most);
    struct duration delay = {1 + (int64_t)random_below(&link->random, (uint64_t)range)};
    moment_set_after(&link->retry_at, now, delay);
}

void rendezvous_link_lose_write(struct rendezvous_link *link, struct instant now) {
    link->phase = RENDEZVOUS_LINK_READY;
    moment_clear(&link->retry_at);
    if (link->has_untold_news) { /* the writer may still announce it */
        moment_set_after(&link->poll_at, now, duration_from_seconds(POLL_INTERVAL_SECONDS));
    }
    pause_after_lost_write(link, now);
}

/* News. */

void rendezvous_link_note_change(struct rendezvous_link *link, bool is_told) {
    link->is_refetch_wanted = true;
    link->is_change_told = link->is_change_told || is_told;
}

void rendezvous_link_note_news(struct rendezvous_link *link) {
    link->has_untold_news = true;
}

/* Time. */

void rendezvous_link_end_pause(struct rendezvous_link *link, struct instant now) {
    if (moment_has_come(&link->retry_at, now)) {
        moment_clear(&link->retry_at);
        link->is_refetch_wanted = true;
    }
}

bool rendezvous_link_beat(
    struct rendezvous_link *link, struct instant now, struct duration keep_alive_interval) {
    if (!rendezvous_link_is_open(link) || !moment_has_come(&link->beat_at, now)) {
        return false;
    }
    moment_set_after(&link->beat_at, now, keep_alive_interval);
    return true;
}

bool rendezvous_link_is_heartbeat_due(const struct rendezvous_link *link, struct instant now) {
    return moment_has_come(&link->heartbeat_at, now);
}

void rendezvous_link_put_off_heartbeat(
    struct rendezvous_link *link, struct instant now, struct duration keep_alive_interval) {
    moment_set_after(&link->heartbeat_at, now, keep_alive_interval);
}

/* Where presence is served, the host of the store notices each write of torchrun's nodes and tells
 * the watchers. But the host may end before the other nodes, so all nodes poll once a node of
 * torchrun is in the record. Without presence no node notices such writes, so all nodes poll. A
 * node that has seen a change which was perhaps not announced fetches the record once more before
 * it tells the watchers. */
bool rendezvous_link_is_poll_due(
    const struct rendezvous_link *link, bool has_strangers, struct instant now) {
    bool wants_poll = !link->has_presence || link->has_untold_news || has_strangers;
    return link->phase == RENDEZVOUS_LINK_READY && wants_poll &&
           moment_has_come(&link->poll_at, now);
}

void rendezvous_link_wake(
    const struct rendezvous_link *link, struct instant now, struct moment *next) {
    if (!rendezvous_link_is_open(link)) {
        if (link->phase == RENDEZVOUS_LINK_CONNECTING) {
            moment_wake(&link->said_at, now, next);
        }
        return;
    }
    moment_wake(&link->beat_at, now, next);
    moment_wake(&link->retry_at, now, next);
    moment_wake(&link->heartbeat_at, now, next);
    moment_wake(&link->poll_at, now, next);
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
