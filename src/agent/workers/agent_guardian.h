/* SPDX-License-Identifier: BSD-3-Clause */
/* The guardian of this agent: knows by what the processes of this job are found, says so when a
 * guardian has to be replaced, and gives it signs of life from the agent's loop where the other
 * nodes may begin a world without a node that stands still. What a guardian does is in
 * host/process/guardian.h. */
#ifndef MUSTER_AGENT_WORKERS_AGENT_GUARDIAN_H
#define MUSTER_AGENT_WORKERS_AGENT_GUARDIAN_H

#include "agent/workers/agent_preparation.h"
#include "base/failure.h"
#include "base/log.h"
#include "core/launch/launch_config.h"
#include "host/loop/event_loop.h"
#include "host/process/guardian.h"

struct agent_guardian_settings {
    const struct launch_config *config; /* borrowed, as all of this */
    const struct agent_preparation *preparation;
    const struct log *log;
    /* How long the agent may stand still from now on; zero: for ever. NULL: there are no other
     * nodes. */
    struct duration (*patience)(void *context);
    /* The agent has stood still for that long, and its workers are being ended. Called on the loop,
     * and by agent_guardian_listen. */
    void (*fenced)(void *context, struct duration silence);
    void *context;
};

struct agent_guardian;

/* Call it before other threads are started. */
__attribute__((warn_unused_result)) enum failure_code agent_guardian_new(struct event_loop *loop,
    const struct agent_guardian_settings *settings, struct agent_guardian **out_guardian,
    struct failure *failure);

/* The guardian ends without ending any process. Accepts NULL. */
void agent_guardian_free(struct agent_guardian *guardian);

/* Takes what the guardian has said: call it before the end of a worker is told. Accepts NULL. */
void agent_guardian_listen(const struct agent_guardian *guardian);

/* Gives a sign of life now, with the patience that holds from now on: call it before workers start.
 * Accepts NULL. */
void agent_guardian_speak(struct agent_guardian *guardian);

/* For those who tell it something. NULL for NULL. */
struct guardian *agent_guardian_process(const struct agent_guardian *guardian);

#endif
