/* SPDX-License-Identifier: BSD-3-Clause */
/* One agent, from its first event to its exit status: the event loop on which core/agent_machine
 * decides and the host's shells perform. Matches LocalElasticAgent.run in
 * torch/distributed/elastic/agent/server/local_elastic_agent.py. */
#ifndef MUSTER_AGENT_AGENT_H
#define MUSTER_AGENT_AGENT_H

#include "base/failure.h"
#include "base/text.h"
#include "core/launch/launch_config.h"
#include "host/log/log_sink.h"

/* Runs the job of `config` on this node until it is over, and returns the exit status: 0, 1 when
 * the job failed, or the root cause's own with --exit-code worker. `environment` is what the
 * workers inherit. What goes wrong is on stderr when this returns. */
int agent_run(
    const struct launch_config *config, const struct text_list *environment, struct log_sink *sink);

#endif
