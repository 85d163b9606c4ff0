/* SPDX-License-Identifier: BSD-3-Clause */
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
#ifndef MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_FAILURE_H
#define MUSTER_CORE_RENDEZVOUS_RENDEZVOUS_FAILURE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/launch/rendezvous_settings.h"
#include "core/rendezvous/moment.h"
#include "core/rendezvous/rendezvous_state.h"

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

#endif
