/* SPDX-License-Identifier: BSD-3-Clause */
/* The guardian of this agent: knows by what the processes of this job are found, and says so when a
 * guardian has to be replaced. What a guardian does is in host/process/guardian.h. */
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
};

struct agent_guardian;

/* Call it before other threads are started. */
__attribute__((warn_unused_result)) enum failure_code agent_guardian_new(struct event_loop *loop,
    const struct agent_guardian_settings *settings, struct agent_guardian **out_guardian,
    struct failure *failure);

/* The guardian ends without ending any process. Accepts NULL. */
void agent_guardian_free(struct agent_guardian *guardian);

/* For those who tell it something. NULL for NULL. */
struct guardian *agent_guardian_process(const struct agent_guardian *guardian);

#endif
