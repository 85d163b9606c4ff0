/* SPDX-License-Identifier: BSD-3-Clause */
/* Spells what a node tells the host of its job's store: entries of its chronicle, in few bytes.
 * Times are ages at the moment of telling, so that the host dates them on its own clock. Kinds and
 * fields have codes of their own, which never change; a reader passes over those it does not know.
 * Also the questions that are put to the host, and the pieces of its answer. */
#ifndef MUSTER_WIRE_TELLING_NODE_TELLING_H
#define MUSTER_WIRE_TELLING_NODE_TELLING_H

#include "base/bytes.h"
#include "base/failure.h"
#include "base/text.h"
#include "core/telling/chronicle_status.h"

/* Of one telling; a node that has more to tell tells again. */
#define NODE_TELLING_MAXIMUM ((size_t)4096)
/* Of one text in a telling. The node's own chronicle has all of it. */
#define NODE_TELLING_TEXT_MAXIMUM ((size_t)160)
/* An older entry counts as that old. */
#define NODE_TELLING_OLDEST_SECONDS (INT64_C(10) * 366 * 24 * 3600)

/* Who tells, and when by its own clock. */
struct node_telling {
    char *node;            /* the telling's; its one name */
    struct wall_time life; /* when its agent began: another one of that name is another agent */
    struct wall_time said;
};

void node_telling_clear(struct node_telling *telling);

void node_telling_begin(const struct node_telling *telling, struct bytes *out);
/* False: there is no room, and nothing was appended. */
bool node_telling_add(
    const struct node_telling *telling, const struct chronicle_entry *entry, struct bytes *out);

/* Reads one telling that came at `now`, by this clock: `take` is called for each entry of a known
 * kind, whose time is by this clock, too; it is the reader's. FAILURE_MALFORMED: it is none, or
 * ends early; what came before has been taken. */
__attribute__((warn_unused_result)) enum failure_code node_telling_read(struct slice bytes,
    struct wall_time now, struct node_telling *out_telling,
    void (*take)(
        void *context, const struct node_telling *telling, const struct chronicle_entry *entry),
    void *context);

/* What a host tells of the job's past, which nodes tell the next host. Its times are ages at an
 * anchor: the moment at which who tells or reads it has joined a round, or at which it is told. So
 * clocks that differ do not change them, and by how much they differ is known, too. */
struct past_anchor {
    int64_t round; /* -1: when it is told */
    struct wall_time at;
};

#define NODE_TELLING_PAST_MAXIMUM ((size_t)32 * 1024)

/* With the recoveries, or the account alone. */
void node_telling_write_past(const struct chronicle_past *past, const struct past_anchor *anchor,
    bool has_recoveries, struct bytes *out);
/* FAILURE_MISSING: it has another anchor. FAILURE_MALFORMED: it is none, or does not add up. The
 * second result is by the clock of who has told. The caller clears the past. */
__attribute__((warn_unused_result)) enum failure_code node_telling_read_past(struct slice bytes,
    const struct past_anchor *anchor, struct chronicle_past *out_past,
    struct wall_time *out_theirs);

/* Keys of the job's store for all this, in a folder of the agents' own keys. The host says that it
 * listens; what nodes tell and what anybody asks goes into one queue; each answer has its own. */
#define TELLING_KEY_SERVED "served"
#define TELLING_KEY_ASKED "asked"
#define TELLING_KEY_TOLD "told/"
#define TELLING_KEY_HANG                                                                           \
    "hang" /* as the host has found; nobody asks unless its workers stand still */
/* Where another node may host the store next: what the host tells of the past, the account alone,
 * and with the recoveries. */
#define TELLING_KEY_ACCOUNT "account"
#define TELLING_KEY_PAST "past"

/* What is asked of the host. */
enum job_question_kind {
    JOB_QUESTION_STATUS, /* a muster.status/1 */
    JOB_QUESTION_NODES,  /* the same, with the nodes one by one */
    JOB_QUESTION_EVENTS, /* those after `after`, a muster.event/1 a line */
    JOB_QUESTION_CLOCK,  /* the host's calendar time, in nanoseconds since 1970 */
    JOB_QUESTION_KIND_COUNT,
};

#define JOB_QUESTION_NAME_SIZE 17

struct job_question {
    enum job_question_kind kind;
    int64_t after;                     /* EVENTS */
    char name[JOB_QUESTION_NAME_SIZE]; /* 16 hexadecimal digits, of the queue of the answer */
};

void job_question_write(const struct job_question *question, struct text *out);
/* FAILURE_MALFORMED: it is none. */
__attribute__((warn_unused_result)) enum failure_code job_question_read(
    struct slice text, struct job_question *out_question);

/* An answer comes in pieces, each behind one of these bytes. */
#define JOB_ANSWER_PIECE_MAXIMUM ((size_t)64 * 1024)
#define JOB_ANSWER_MORE 'm'
#define JOB_ANSWER_LAST 'e'
#define JOB_ANSWER_REFUSED 'n' /* the piece says why there is none */

#endif
