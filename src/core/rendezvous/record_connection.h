/* SPDX-License-Identifier: BSD-3-Clause */
/* A node's connection to the shared record: whether it is open, which request is under way, whether
 * the node's copy of the record is current, and when the node fetches, writes or gives a sign of
 * life next. It knows nothing of what is in the record and wants no effects: it answers questions,
 * and the machine tells it what was done. The struct is one part of a rendezvous machine. Only this
 * module changes it; others read it. */
#ifndef MUSTER_CORE_RENDEZVOUS_RECORD_CONNECTION_H
#define MUSTER_CORE_RENDEZVOUS_RECORD_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/duration.h"
#include "base/random.h"
#include "core/rendezvous/rendezvous_state.h"

enum record_connection_phase {
    RECORD_CONNECTION_CLOSED,
    RECORD_CONNECTION_CONNECTING,
    RECORD_CONNECTION_READY, /* open, and no request is under way */
    RECORD_CONNECTION_FETCHING,
    RECORD_CONNECTION_WRITING,
    RECORD_CONNECTION_WRITING_HEARTBEATS, /* this write changes only heartbeats */
};

struct record_connection {
    enum record_connection_phase phase;
    struct random random; /* for pauses and for new names of the node */
    bool was_open;        /* there is or was a connection */
    bool has_presence;    /* the host of the store serves presence */
    bool is_host;
    bool is_refetch_wanted; /* the record may have changed since it was seen last */
    bool is_change_told;    /* the watchers were told of a change since the record was seen */
    bool has_untold_news;   /* the watchers may not know yet what this node has seen */
    int lost_writes;        /* writes lost in a row */
    /* While the node connects again: since when it has no connection, until when it tries, and when
     * it next says so. */
    struct instant lost_at;
    struct instant given_up_at;
    struct moment said_at;
    struct instant write_began;
    struct moment retry_at; /* the end of a pause after writes that were lost */
    struct moment poll_at;
    struct moment beat_at;      /* the next sign of life to the store */
    struct moment heartbeat_at; /* the next heartbeat in the record */
};

void record_connection_init(struct record_connection *connection, uint64_t seed);

bool record_connection_is_open(const struct record_connection *connection);
bool record_connection_is_fetching(const struct record_connection *connection);
bool record_connection_is_writing(const struct record_connection *connection);
/* While it is pausing, after lost writes, the machine writes nothing. */
bool record_connection_is_pausing(const struct record_connection *connection);

/* Connections. */

void record_connection_connect(struct record_connection *connection);
/* Whether the connection is open now. False when the node was not connecting. */
bool record_connection_open(struct record_connection *connection, bool has_presence, bool is_host,
    struct instant now, struct duration keep_alive_interval);
/* Whether the connection was open. */
bool record_connection_close(struct record_connection *connection);
/* The node connects again, since the connection was lost now. It tries until `given_up_at`. */
void record_connection_connect_again(
    struct record_connection *connection, struct instant now, struct instant given_up_at);
/* Whether the node is to say now that it still has no connection. If so, the next time is a few
 * seconds later. */
bool record_connection_says_lost(struct record_connection *connection, struct instant now);
/* Draws the local id of a new name for this node. */
int64_t record_connection_draw_local_id(struct record_connection *connection);
/* Draws a number from which rounds are counted: a multiple of 1000, and never 0. */
int64_t record_connection_draw_base(struct record_connection *connection);

/* Requests. Only one is under way at a time. */

void record_connection_fetch(struct record_connection *connection, struct instant now);
/* The record, which was to be fetched, is not: the host of the store tells what is in it. */
void record_connection_skip_fetch(struct record_connection *connection);
void record_connection_write(
    struct record_connection *connection, bool is_heartbeats, struct instant now);
/* The record was fetched. Whether this node is to tell the other watchers of what it has seen. */
bool record_connection_end_fetch(struct record_connection *connection);
/* The next heartbeats are due after `heartbeat_interval` if these were heartbeats. Else the record
 * may have new nodes, whose heartbeats are due after `keep_alive_interval` at the latest. */
void record_connection_win_write(struct record_connection *connection, struct instant now,
    struct duration heartbeat_interval, struct duration keep_alive_interval);
/* A pause follows from the second lost write in a row on. */
void record_connection_lose_write(struct record_connection *connection, struct instant now);

/* News. */

/* The record may have changed. `is_told`: the other watchers were told of it too. */
void record_connection_note_change(struct record_connection *connection, bool is_told);
/* What this node has just seen is new, and perhaps the watchers were not told of it. */
void record_connection_note_news(struct record_connection *connection);

/* Time. */

/* Ends a pause that is over. The record may have changed during the pause, so it is fetched again.
 */
void record_connection_end_pause(struct record_connection *connection, struct instant now);
/* Whether a sign of life is due. If so, the next one is due an interval later. */
bool record_connection_beat(
    struct record_connection *connection, struct instant now, struct duration keep_alive_interval);
bool record_connection_is_heartbeat_due(
    const struct record_connection *connection, struct instant now);
void record_connection_put_off_heartbeat(
    struct record_connection *connection, struct instant now, struct duration keep_alive_interval);
/* Whether to fetch the record although no change was announced. `has_strangers`: the record has
 * nodes of torchrun, which do not announce what they write. */
bool record_connection_is_poll_due(
    const struct record_connection *connection, bool has_strangers, struct instant now);
/* Sets `next` to the time of the next action, if that is earlier. */
void record_connection_wake(
    const struct record_connection *connection, struct instant now, struct moment *next);

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
