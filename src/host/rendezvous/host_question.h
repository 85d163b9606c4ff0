/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks one node of a job which node hosts the job's store (wire/rendezvous/host_answer). A node
 * that hosts it answers, and one that stands by does; a process that is none of this job's nodes
 * does not. */
#ifndef MUSTER_HOST_RENDEZVOUS_HOST_QUESTION_H
#define MUSTER_HOST_RENDEZVOUS_HOST_QUESTION_H

#include <stdbool.h>

#include "base/duration.h"
#include "base/failure.h"
#include "core/rendezvous/host_place.h"
#include "host/loop/event_loop.h"
#include "wire/rendezvous/host_answer.h"
#include "wire/store/store_proof.h"

struct host_question;

enum host_question_outcome {
    HOST_QUESTION_ANSWERED,
    /* Every connection was refused: the machine is there, and nobody listens at that port. */
    HOST_QUESTION_REFUSED,
    HOST_QUESTION_SILENT, /* there was no answer in time */
    /* Somebody is there who is no node of this job, or has another job token. */
    HOST_QUESTION_FOREIGN,
};

struct host_question_settings {
    const struct host_place *place; /* of the node that is asked; copied */
    const char *run_id;
    const struct store_key
        *key;                 /* of the job's token; outlives the question; NULL: there is none */
    struct duration patience; /* for all of it */
    /* Called once, on the loop, unless the question is freed before; it may free the question.
     * Borrowed: the answer, which is NULL unless ANSWERED, and the reason, which is NULL then. */
    void (*done)(void *context, enum host_question_outcome outcome,
        const struct host_answer *answer, const char *reason);
    void *context;
};

/* Never NULL. */
struct host_question *host_question_ask(
    struct event_loop *loop, const struct host_question_settings *settings);
/* Accepts NULL. */
void host_question_free(struct host_question *question);

#endif
