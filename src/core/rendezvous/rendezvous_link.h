/* SPDX-License-Identifier: BSD-3-Clause */
/* A node's link to the shared record: whether the node is connected, which request is under way,
 * whether its copy of the record is current, and when it fetches, writes or gives a sign of life
 * next. The link knows nothing of what is in the record and wants no effects: it answers questions,
 * and the machine tells it what was done. The struct is one part of a rendezvous machine. Only this
 * module changes it; others read it. */
#ifndef MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_LINK_H
#define MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/random.h"
#include "core/rendezvous/moment.h"
#include "core/rendezvous/rendezvous_state.h"

enum rendezvous_link_phase {
    RENDEZVOUS_LINK_CLOSED,
    RENDEZVOUS_LINK_CONNECTING,
    RENDEZVOUS_LINK_READY, /* open, and no request is under way */
    RENDEZVOUS_LINK_FETCHING,
    RENDEZVOUS_LINK_WRITING,
    RENDEZVOUS_LINK_WRITING_HEARTBEATS, /* this write changes only heartbeats */
};

struct rendezvous_link {
    enum rendezvous_link_phase phase;
    struct random random; /* for pauses and for new names of the node */
    bool was_open;        /* there is or was a connection */
    bool has_presence;    /* the host of the store serves presence */
    bool is_host;
    bool is_refetch_wanted; /* the record may have changed since it was seen last */
    bool is_change_told;    /* the watchers were told of a change since the record was seen */
    bool has_untold_news;   /* the watchers may not know yet what this node has seen */
    int lost_writes;        /* writes lost in a row */
    /* While the link connects again: since when there is no connection, until when the node tries,
     * and when it next says so. */
    struct instant lost_at;
    struct instant given_up_at;
    struct moment said_at;
    struct instant write_began;
    struct moment retry_at; /* the end of a pause after writes that were lost */
    struct moment poll_at;
    struct moment beat_at;      /* the next sign of life to the store */
    struct moment heartbeat_at; /* the next heartbeat in the record */
};

void rendezvous_link_init(struct rendezvous_link *link, uint64_t seed);

bool rendezvous_link_is_open(const struct rendezvous_link *link);
bool rendezvous_link_is_fetching(const struct rendezvous_link *link);
bool rendezvous_link_is_writing(const struct rendezvous_link *link);
/* While the link is pausing, after lost writes, the machine writes nothing. */
bool rendezvous_link_is_pausing(const struct rendezvous_link *link);

/* Connections. */

void rendezvous_link_connect(struct rendezvous_link *link);
/* Whether the link is open now. False when the link was not connecting. */
bool rendezvous_link_open(struct rendezvous_link *link, bool has_presence, bool is_host,
    struct instant now, struct duration keep_alive_interval);
/* Whether the link was open. */
bool rendezvous_link_close(struct rendezvous_link *link);
/* The link connects again, after a connection that was lost now. It tries until `given_up_at`. */
void rendezvous_link_connect_again(
    struct rendezvous_link *link, struct instant now, struct instant given_up_at);
/* Whether the node is to say now that it still has no connection. If so, the next time is a few
 * seconds later. */
bool rendezvous_link_says_lost(struct rendezvous_link *link, struct instant now);
/* Draws the local id of a new name for this node. */
int64_t rendezvous_link_draw_local_id(struct rendezvous_link *link);
/* Draws a number from which rounds are counted: a multiple of 1000, and never 0. */
int64_t rendezvous_link_draw_base(struct rendezvous_link *link);

/* Requests. Only one is under way at a time. */

void rendezvous_link_fetch(struct rendezvous_link *link, struct instant now);
/* The record, which was to be fetched, is not: the host of the store tells what is in it. */
void rendezvous_link_skip_fetch(struct rendezvous_link *link);
void rendezvous_link_write(struct rendezvous_link *link, bool is_heartbeats, struct instant now);
/* The record was fetched. Whether this node is to tell the other watchers of what it has seen. */
bool rendezvous_link_end_fetch(struct rendezvous_link *link);
/* The next heartbeats are due after `heartbeat_interval` if these were heartbeats. Else the record
 * may have new nodes, whose heartbeats are due after `keep_alive_interval` at the latest. */
void rendezvous_link_win_write(struct rendezvous_link *link, struct instant now,
    struct duration heartbeat_interval, struct duration keep_alive_interval);
/* A pause follows from the second lost write in a row on. */
void rendezvous_link_lose_write(struct rendezvous_link *link, struct instant now);

/* News. */

/* The record may have changed. `is_told`: the other watchers were told of it too. */
void rendezvous_link_note_change(struct rendezvous_link *link, bool is_told);
/* What this node has just seen is new, and perhaps the watchers were not told of it. */
void rendezvous_link_note_news(struct rendezvous_link *link);

/* Time. */

/* Ends a pause that is over. The record may have changed during the pause, so it is fetched again.
 */
void rendezvous_link_end_pause(struct rendezvous_link *link, struct instant now);
/* Whether a sign of life is due. If so, the next one is due an interval later. */
bool rendezvous_link_beat(
    struct rendezvous_link *link, struct instant now, struct duration keep_alive_interval);
bool rendezvous_link_is_heartbeat_due(const struct rendezvous_link *link, struct instant now);
void rendezvous_link_put_off_heartbeat(
    struct rendezvous_link *link, struct instant now, struct duration keep_alive_interval);
/* Whether to fetch the record although no change was announced. `has_strangers`: the record has
 * nodes of torchrun, which do not announce what they write. */
bool rendezvous_link_is_poll_due(
    const struct rendezvous_link *link, bool has_strangers, struct instant now);
/* Sets `next` to the time of the next action, if that is earlier. */
void rendezvous_link_wake(
    const struct rendezvous_link *link, struct instant now, struct moment *next);

/* How long a node waits for a world, at the last call of a round, and for its own end. The struct
 * is one part of a rendezvous machine. Only this module changes it; others read it. Compare
 * RendezvousTimeout in torch/distributed/elastic/rendezvous/dynamic_rendezvous.py, and its
 * _RendezvousOpExecutor's deadlines. */

/* A zeroed struct is valid: the node waits for nothing. */
struct rendezvous_patience {
    struct moment join_deadline;
    struct moment rollback_deadline; /* ROLLBACK_SECONDS after the join deadline */
    size_t size_when_late;           /* participants at the join deadline, with this node */
    struct moment settle_deadline;
    struct moment last_call;
    int64_t last_call_round;
    struct wall_time last_call_deadline; /* as written in the record; tells two last calls apart */
};

/* Begins the wait for a world, unless it has begun already. */
void rendezvous_patience_begin(
    struct rendezvous_patience *patience, struct instant now, struct duration join_timeout);
/* Begins the wait for a world anew. */
void rendezvous_patience_prolong(
    struct rendezvous_patience *patience, struct instant now, struct duration join_timeout);
/* Ends the wait: the node has a world. */
void rendezvous_patience_end(struct rendezvous_patience *patience);

/* Whether the join deadline has passed. The first time it notes how many participants the round
 * has. */
bool rendezvous_patience_is_late(
    struct rendezvous_patience *patience, size_t participants, struct instant now);
/* The node has learned more of the round: if it is late, the participants are counted again. */
void rendezvous_patience_count_again(struct rendezvous_patience *patience);
/* Whether the time after the join deadline, in which torchrun's rules still take a node out of the
 * record, has passed too. */
bool rendezvous_patience_is_too_late(
    const struct rendezvous_patience *patience, struct instant now);

/* Whether the last call of the round seen is over. It lasts `last_call_timeout` on this node's
 * clock, from the time when this node first saw it. */
bool rendezvous_patience_is_last_call_over(struct rendezvous_patience *patience,
    const struct rendezvous_state *seen, struct instant now, struct duration last_call_timeout);

/* This node's part is to end within `close_timeout`. */
void rendezvous_patience_begin_end(
    struct rendezvous_patience *patience, struct instant now, struct duration close_timeout);
bool rendezvous_patience_has_ended(const struct rendezvous_patience *patience, struct instant now);

void rendezvous_patience_wake(
    const struct rendezvous_patience *patience, struct instant now, struct moment *next);

#endif
