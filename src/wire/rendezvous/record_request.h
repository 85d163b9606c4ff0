/* SPDX-License-Identifier: BSD-3-Clause */
/* Every question that a node asks the store about its job's record, as a store request: the record
 * itself, its changes, presence, rolls, and what must be known before. This module only spells
 * requests. rendezvous_record_store decides when to ask and what follows from an answer. */
#ifndef MUSTER_WIRE_RENDEZVOUS_RECORD_REQUEST_H
#define MUSTER_WIRE_RENDEZVOUS_RECORD_REQUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "core/store/store_request.h"
#include "wire/store/owned_request.h"

enum record_question_kind {
    /* before the record is read */
    RECORD_QUESTION_PRESENCE_SERVED, /* does the server tie keys to connections? */
    RECORD_QUESTION_DELEGATION,      /* does it, and does the host write the record for others? */
    RECORD_QUESTION_PROTOCOL, /* sets `value` if there is none; the answer is the value in the store
                               */
    RECORD_QUESTION_REFUSED,  /* has the server heard that this node is refused? */
    RECORD_QUESTION_SETTINGS, /* as for the protocol */
    /* the record */
    RECORD_QUESTION_BEGINNING, /* if there is none, begins one as torchrun does, with a word for
                                  "none yet"; the answer is the value in the store */
    RECORD_QUESTION_RECORD,
    RECORD_QUESTION_WRITE, /* puts `value` in place of `expected`; the answer is the value in the
                              store */
    /* changes of the record */
    RECORD_QUESTION_CHANGE_COUNT,  /* adds `number` to the counter, mostly 0; the answer is it */
    RECORD_QUESTION_NEW_CHANGE,    /* adds one to the counter; the answer is the change's number */
    RECORD_QUESTION_NEW_WRITE,     /* the same for a change by this node's own write */
    RECORD_QUESTION_TELL_CHANGE,   /* tells the change `number` */
    RECORD_QUESTION_TELL_WRITE,    /* the same for a change by this node's own write */
    RECORD_QUESTION_FORGET_CHANGE, /* deletes the key of the change `number` */
    RECORD_QUESTION_NEXT_CHANGE,   /* waits for the change `number` */
    /* nodes */
    RECORD_QUESTION_PRESENCE,       /* sets `key` to `value` */
    RECORD_QUESTION_STANDING,       /* waits until the queue `key` has an item, and takes it */
    RECORD_QUESTION_FINISHED_COUNT, /* how many nodes are in the exit barrier of the round `number`
                                     */
    RECORD_QUESTION_ROLL,           /* waits for the nodes ranked 0 to `node` - 1 */
    RECORD_QUESTION_ROLL_ANSWER,    /* the answer of the node ranked `node` in the round `number` */
    RECORD_QUESTION_DELETE,         /* the `key` */
    RECORD_QUESTION_CLEAR,          /* the same, of an earlier round */
    RECORD_QUESTION_KIND_COUNT,
};

/* Everything is borrowed. Fields that the kind does not use are zero. */
struct record_question {
    enum record_question_kind kind;
    int64_t number;
    int node;
    const char *key;       /* complete, as it is sent */
    struct slice value;    /* without a NUL */
    struct slice expected; /* any bytes; empty: there must be no record yet */
};

/* The store operation that this kind of question uses. */
enum store_operation record_question_operation(enum record_question_kind kind);
/* Whether the answer comes when something has happened. */
bool record_question_waits(enum record_question_kind kind);

/* Builds the request. The caller clears it with owned_request_clear after it has been sent. */
void record_request_build(
    const struct record_question *question, const char *run_id, struct owned_request *out_request);

#endif
