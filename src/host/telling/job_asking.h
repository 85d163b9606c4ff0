/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks the agent that hosts a job's store how the job stands, over a connection of its own to that
 * store. The question goes into one queue there, and the answer comes in another one, which only
 * this question has. So nothing listens that does not listen anyway, and who asks proves itself as
 * the nodes do. Nothing is written into a store where no such agent listens. */
#ifndef MUSTER_HOST_TELLING_JOB_ASKING_H
#define MUSTER_HOST_TELLING_JOB_ASKING_H

#include "base/bytes.h"
#include "base/duration.h"
#include "base/failure.h"
#include "host/loop/event_loop.h"
#include "wire/store/store_proof.h"
#include "wire/telling/node_telling.h"

/* Of a whole answer. */
#define JOB_ASKING_ANSWER_MAXIMUM ((size_t)16 << 20)

struct job_asking;

struct job_asking_settings {
    const char *host; /* of the store; copied */
    int port;
    const struct store_key *key; /* of the job's token; outlives the asking; NULL: there is none */
    const char *folder;          /* of the telling's keys, with the last '/'; copied */
    enum job_question_kind kind;
    int64_t after;
    struct duration timeout; /* for all of it */
    /* Called once, unless it is freed before; borrowed for the call. NULL: no failure.
     * FAILURE_MISSING: nobody there keeps the job's chronicle; FAILURE_LIMIT: … or it says why
     * it does not answer. */
    void (*done)(void *context, const struct failure *failure, struct slice answer);
    void *context;
};

/* Never NULL. */
struct job_asking *job_asking_new(
    struct event_loop *loop, const struct job_asking_settings *settings);
/* May be called from inside `done`. Accepts NULL. */
void job_asking_free(struct job_asking *asking);

#endif
