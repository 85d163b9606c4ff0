/* SPDX-License-Identifier: BSD-3-Clause */
/* Judges the health of an agent, for job managers that restart an agent which is not healthy. The
 * verdict depends on the phase of the agent and on the last progress of its watchdog. An agent is
 * healthy while it waits: for other nodes, for workers that end, or in the exit barrier. Compare
 * HealthCheckServer in torch/distributed/elastic/agent/server/health_check_server.py, whose
 * alive_callback tells the last progress. PyTorch itself has no server behind it. */
#ifndef MUSTER_CORE_TELLING_HEALTH_H
#define MUSTER_CORE_TELLING_HEALTH_H

#include <stdbool.h>

#include "base/duration.h"
#include "core/agent/agent_machine.h"

/* How long an agent is healthy without progress, by default. Matches
 * LocalElasticAgent._setup_healthcheck in local_elastic_agent.py. */
#define HEALTH_TIMEOUT_SECONDS 60

enum health_phase {
    HEALTH_JOINING,    /* joins the other nodes, or starts the first workers */
    HEALTH_RUNNING,    /* the workers run */
    HEALTH_RESTARTING, /* ends the workers, and joins again to start new ones */
    HEALTH_DRAINING,   /* ends the workers for good, or is in the exit barrier */
};

struct health_facts {
    enum agent_phase phase;
    enum agent_stop_reason stop_reason; /* while STOPPING */
    bool has_started;                   /* workers were started before */
    struct wall_time now;
    struct wall_time last_progress;
    struct duration timeout; /* how long it is healthy without progress */
};

struct health_verdict {
    bool is_alive;
    enum health_phase phase;
    struct duration silence; /* the time since the last progress */
    struct duration timeout; /* how much silence is healthy */
};

struct health_verdict health_judge(const struct health_facts *facts);

/* The name: "joining", "running", "restarting", "draining". */
const char *health_phase_name(enum health_phase phase);
/* What the phase means, as part of a sentence. */
const char *health_phase_meaning(enum health_phase phase);

#endif
