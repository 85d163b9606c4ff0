/* SPDX-License-Identifier: BSD-3-Clause */
/* The shared record as one node sees it: the name of this node in the record, the record as it was
 * seen last, and the draft of the next write. This module decides nothing. The struct is one part
 * of a rendezvous machine. Only this module changes it; others read it, and change a draft that
 * they have begun. */
#ifndef MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_MEMBER_H
#define MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_MEMBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/duration.h"
#include "core/launch/launch_config.h"
#include "core/rendezvous/rendezvous_delegation.h"
#include "core/rendezvous/rendezvous_state.h"

/* A zeroed struct is valid once `me` is set. */
struct rendezvous_view {
    struct node_identity me;
    /* A fetch or a write on this connection has shown the record, or that there is none. */
    bool has_record;
    /* The store has lost the record: it has none, or an earlier one. `seen` is the one before the
     * loss, to be written again. */
    bool is_lost;
    /* There is no record any more, and this node does not hold it: its next draft begins another
     * one. */
    bool is_anew;
    /* The name is of a connection to another host, and no record of this one was seen yet. */
    bool is_name_kept;
    struct rendezvous_state seen;
    struct rendezvous_state draft;
    /* This node was looked for in `seen` since that was seen, and has this place there, or none.
     * It is asked for after every event, of which there may be one for each node of the record. */
    bool is_self_known;
    size_t self_place; /* or NODE_TABLE_ABSENT */
    /* Above the ordinal of every complete round that this node has ever seen. */
    int64_t next_ordinal;
};

void rendezvous_view_clear(struct rendezvous_view *view);

/* A new connection begins. The record was not seen on it yet. */
void rendezvous_view_begin(struct rendezvous_view *view);
/* Gives the node a new name, so that what other nodes know of the node of the old connection is not
 * believed of this one. */
void rendezvous_view_rename(struct rendezvous_view *view, int64_t local_id);

/* Whether this record differs from the one seen last on this connection. NULL is the absent record.
 * Heartbeats do not count. */
bool rendezvous_view_is_news(
    const struct rendezvous_view *view, const struct rendezvous_state *state_or_null);
/* Takes note of the record by copying it. NULL is the absent record. A node that has a place in the
 * record seen last on this connection does not believe that there is none, or an earlier one.
 * `has_traces`: the store shows that there was a record. */
void rendezvous_view_see(
    struct rendezvous_view *view, const struct rendezvous_state *state_or_null, bool has_traces);

/* Takes note of what the host of the store has told: a record in which this node alone is listed,
 * or nobody. */
void rendezvous_view_be_told(struct rendezvous_view *view, const struct rendezvous_state *state);

/* Begins a draft: a copy of the record as seen last, for the caller to change and write. */
struct rendezvous_state *rendezvous_view_begin_draft(struct rendezvous_view *view);
/* Whether there was a record in this store that its next draft does not go on with, so that there
 * may have been rounds of which this node does not know. */
bool rendezvous_view_may_miss_rounds(const struct rendezvous_view *view);
/* A draft in which a round begins or is open gets an ordinal above those of all complete rounds
 * seen: rounds only count up, also in a record that was begun anew. */
void rendezvous_view_count_on(struct rendezvous_view *view);
/* The draft was written: it now is the record as seen last. */
void rendezvous_view_adopt_draft(struct rendezvous_view *view);

/* This node in the record as seen last, or NULL. */
const struct rendezvous_node *rendezvous_view_self(const struct rendezvous_view *view);
bool rendezvous_view_is_participant(const struct rendezvous_view *view);
/* Whether this node has the lowest rank of the complete round. */
bool rendezvous_view_is_first(const struct rendezvous_view *view);

/* A node's place as its agent knows it: in which world its workers run, whether the agent asks for
 * a world, which round was the last that ended for this node, and which node is missing from a
 * world that the agent was told of. The record may be at a later round already. The struct is one
 * part of a rendezvous machine. Only this module changes it; others read it. */

#define RENDEZVOUS_NO_ROUND (-1)

struct rendezvous_place {
    bool is_join_asked;
    bool is_in_world; /* the agent knows `world`, and does not know that it is over */
    bool is_placed;   /* the nodes of `world` have exchanged what the workers need */
    bool opens_store; /* the host of the job's store has ranked `world`, and this is rank 0 */
    bool is_held;     /* `world` is ranked; its nodes wait until all of them are ready */
    /* Of the last held world for which this node was ready, and of the last ranked one whose store
     * it has opened: what it says of it on this connection. */
    struct rendezvous_meeting meeting;
    /* The node waited or was a spare when it last saw a record that was not closed. */
    bool was_parked;
    /* The last round that was over; the node leaves it, and does not enter it. */
    int64_t ended_round;
    /* The world that the agent was told of last. Its round is RENDEZVOUS_NO_ROUND before. */
    struct rendezvous_state world;
};

void rendezvous_place_init(struct rendezvous_place *place);
void rendezvous_place_clear(struct rendezvous_place *place);

/* The round of the world that the agent runs in, or RENDEZVOUS_NO_ROUND. */
int64_t rendezvous_place_round(const struct rendezvous_place *place);

void rendezvous_place_ask_join(struct rendezvous_place *place);
/* The agent is told of this world, and no longer asks for one: no worker of an earlier one runs
 * here. A node that opens the store is ready when that is open. */
void rendezvous_place_enter(struct rendezvous_place *place, const struct rendezvous_state *world,
    bool opens_store, bool is_held);
/* The workers' store of this round is open, if this node is to open it. `address` may be NULL. */
void rendezvous_place_note_opened(
    struct rendezvous_place *place, int64_t round, const char *address, int port);
/* All nodes of the world are ready. */
void rendezvous_place_release(struct rendezvous_place *place);
/* A connection begins: nothing was said on it yet. */
void rendezvous_place_say_nothing(struct rendezvous_place *place);
/* The nodes of the world have exchanged what the workers need. */
void rendezvous_place_note_placed(struct rendezvous_place *place);
/* The world in which this node runs is over. */
void rendezvous_place_leave(struct rendezvous_place *place);
/* The node will not enter this round. With RENDEZVOUS_NO_ROUND it may enter every round. */
void rendezvous_place_give_up(struct rendezvous_place *place, int64_t round);
/* Takes note of whether this node waits or is a spare. */
void rendezvous_place_look(struct rendezvous_place *place, const struct rendezvous_view *view);

/* Writes a reason that names the node that has left the round, if that round is the world told
 * last. */
void rendezvous_place_name_missing(const struct rendezvous_place *place,
    const struct rendezvous_state *seen, int64_t round, char *out, size_t size);
/* Writes why this node's world is over. The caller has seen a record that no longer has this world.
 */
void rendezvous_place_explain_end(const struct rendezvous_place *place,
    const struct rendezvous_view *view, char *out, size_t size);

/* What a rendezvous knows of finished workers: whether the workers of this node are done, and how
 * many nodes are in the exit barrier of the round seen. The barrier itself is
 * core/round/round_exchange. The struct is one part of a rendezvous machine. Only this module
 * changes it; others read it. */

/* A zeroed struct is valid: no node is known to be done. */
struct rendezvous_finish {
    bool is_here;        /* this node's workers are done in the world in which it is */
    bool is_count_known; /* known, or asked for, since the last sign of life */
    int64_t round;       /* the round to which the count belongs */
    int64_t count;       /* of nodes in that round's exit barrier */
};

/* `enter`: this node's workers are done. `leave`: they are to run again. */
void rendezvous_finish_enter(struct rendezvous_finish *finish);
void rendezvous_finish_leave(struct rendezvous_finish *finish);

/* Whether the store is to be asked how many nodes are in the exit barrier of that round. It is
 * asked once between two signs of life. Until it answers, the count is 1. */
bool rendezvous_finish_ask(struct rendezvous_finish *finish, int64_t round);
void rendezvous_finish_take_count(struct rendezvous_finish *finish, int64_t count);
void rendezvous_finish_forget_count(struct rendezvous_finish *finish);
bool rendezvous_finish_is_anywhere(const struct rendezvous_finish *finish);

/* A failure of workers on this node, until it is in the record. Such a failure asks for a restart,
 * or it would end the job. In the second case this node doubts it first.
 *
 * The reason is that a lost node can cause the failure. A worker whose peer vanishes ends with a
 * broken connection, often before any node knows that the peer's node is lost. The loss of a node
 * must not cost a restart. So a restart that was charged is given back when a node is found lost
 * soon afterwards. And while a failure is doubted, this node calls the roll of the round: it asks
 * every participant for an answer. This takes milliseconds when all participants are there.
 * Otherwise this node waits as long as it takes to find out that a node is lost.
 *
 * This holds only where all participants are Muster's nodes, and where the job heeds the loss of
 * nodes. The struct is one part of a rendezvous machine. Only this module changes it; others read
 * it. */

enum rendezvous_failure_stage {
    RENDEZVOUS_FAILURE_NONE,
    RENDEZVOUS_FAILURE_RESTART_WANTED,
    RENDEZVOUS_FAILURE_DOUBTED,
    RENDEZVOUS_FAILURE_ROLL_CALLED,
    RENDEZVOUS_FAILURE_ROLL_ANSWERED,
};

struct rendezvous_failure {
    enum rendezvous_failure_stage stage;
    char reason[RENDEZVOUS_REASON_SIZE];
    struct moment doubt_deadline;
    bool has_answered;      /* a roll, in any round */
    int64_t answered_round; /* the last round whose roll call this node has answered */
    bool knows_restarts;    /* the next two members are set */
    /* How many restarts the job had used when this node last saw the record. */
    int64_t restarts_seen;
    /* The origin of that record. A smaller number is believed only of the same origin, where a
     * restart may have been given back. */
    int64_t origin;
    struct moment charged_at; /* when this node saw that the last restart was charged */
};

void rendezvous_failure_init(struct rendezvous_failure *failure);

/* Workers failed on this node, and the job restarts them. */
void rendezvous_failure_want_restart(struct rendezvous_failure *failure, const char *reason);
/* Workers failed on this node, and the job has no restart left. `note` keeps the reason. `doubt`
 * then begins to doubt the failure, for at most `patience`. */
void rendezvous_failure_note(struct rendezvous_failure *failure, const char *reason);
void rendezvous_failure_doubt(
    struct rendezvous_failure *failure, struct instant now, struct duration patience);
/* The failure is in the record, or no longer matters. */
void rendezvous_failure_end(struct rendezvous_failure *failure);

bool rendezvous_failure_wants_restart(const struct rendezvous_failure *failure);
bool rendezvous_failure_is_doubted(const struct rendezvous_failure *failure);

/* Whether the doubt is over: all participants have answered the roll call, or the patience has
 * ended. */
bool rendezvous_failure_stands(const struct rendezvous_failure *failure, struct instant now);
/* Whether this node is to call the roll now. It is true once per doubt. */
bool rendezvous_failure_call_roll(struct rendezvous_failure *failure);
void rendezvous_failure_take_roll(struct rendezvous_failure *failure);
/* The store in which the roll was called is gone: it is called again, and answered again, in the
 * next one. A doubt then has its patience anew. */
void rendezvous_failure_forget_roll(
    struct rendezvous_failure *failure, struct instant now, struct duration patience);
/* Whether this node is to answer a roll call now. The caller makes sure that this node is a
 * participant of the round seen. This node answers its own roll call too. It is true once per
 * round. */
bool rendezvous_failure_answer_roll(
    struct rendezvous_failure *failure, const struct rendezvous_state *seen);

/* How long it takes at most until all nodes know that a node is lost. It does not hold for a node
 * whose agent alone has stalled: the workers of that node run on, and no worker's connection
 * breaks. */
struct duration rendezvous_failure_patience(
    const struct rendezvous_settings *settings, bool has_presence);

/* Notes how many restarts the job has used, and when one is charged. It does not believe a record
 * that was begun anew, because its store was started again or because it was deleted: the job has
 * used those restarts all the same. */
void rendezvous_failure_look(
    struct rendezvous_failure *failure, const struct rendezvous_state *seen, struct instant now);
/* The least number of restarts that a record written by this node must have. */
int64_t rendezvous_failure_restarts(const struct rendezvous_failure *failure);
/* Whether the last restart was charged at most `patience` ago, so that the loss of a node that is
 * known now may be its cause. */
bool rendezvous_failure_may_be_consequence(const struct rendezvous_failure *failure,
    const struct rendezvous_state *seen, struct instant now, struct duration patience);

void rendezvous_failure_wake(
    const struct rendezvous_failure *failure, struct instant now, struct moment *next);

/* A new node that has standby workers makes them ready before it asks a running world to let it in:
 * that world stands still from then on until the workers of the new node have imported what they
 * need. The struct is one part of a rendezvous machine. Only this module changes it; others read
 * it. */

/* A zeroed struct is valid: this node does not hold back. */
struct rendezvous_warming {
    struct duration patience; /* how long it holds back at most; zero: not at all */
    struct moment end;        /* set while it holds back */
};

/* Whether this node holds back now, in no list of the record that it has seen. It does when a world
 * of Muster's nodes runs without it; when that world is no more, it is waited for. `out_begins`
 * becomes true when it begins to, which is only once. */
bool rendezvous_warming_holds(struct rendezvous_warming *warming,
    const struct rendezvous_view *view, struct instant now, bool *out_begins);

/* The standby workers are ready, or will not be. It does not hold back any more. */
void rendezvous_warming_finish(struct rendezvous_warming *warming);

void rendezvous_warming_wake(
    const struct rendezvous_warming *warming, struct instant now, struct moment *next);

#endif
