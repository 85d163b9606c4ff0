/* SPDX-License-Identifier: BSD-3-Clause */
/* One agent, from its first event to its exit status: the event loop on which core/agent_machine
 * decides and the host's shells perform. Matches LocalElasticAgent.run in
 * torch/distributed/elastic/agent/server/local_elastic_agent.py. */
#ifndef MUSTER_AGENT_AGENT_H
#define MUSTER_AGENT_AGENT_H

#include <stdbool.h>

#include "agent/telling/agent_audience.h"
#include "base/failure.h"
#include "base/text.h"
#include "core/launch/launch_config.h"
#include "host/log/log_sink.h"
#include "host/process/process_spawn.h"

/* Runs the job of `config` on this node until it is over, and returns the exit status: 0, 1 when
 * the job failed, or the root cause's own with --exit-code worker. `environment` is what the
 * workers inherit. What goes wrong is on stderr when this returns. */
int agent_run(
    const struct launch_config *config, const struct text_list *environment, struct log_sink *sink);

/* A program that has started an agent. */
struct agent_program {
    const struct process_function *function; /* what workers run; NULL: what `config` says */
    struct agent_audience_settings audience; /* `asked` and its context are the agent's own */
    bool *out_has_no_memory; /* becomes true where it has ended for want of memory; or NULL */
};

/* The same for a program, which is borrowed. */
int agent_run_for(const struct agent_program *program, const struct launch_config *config,
    const struct text_list *environment, struct log_sink *sink);

#endif
