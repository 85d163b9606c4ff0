/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether an agent is well, for those who restart what is not: a verdict over the phase it is in
 * and when its watchdog last made progress. An agent that waits is not dead, whatever it waits for:
 * other nodes, workers that end, or nodes that are not done. Compare HealthCheckServer in
 * torch/distributed/elastic/agent/server/health_check_server.py, whose alive_callback tells the
 * last progress and which PyTorch leaves without a server. */
#ifndef MUSTER_CORE_HEALTH_H
#define MUSTER_CORE_HEALTH_H

#include <stdbool.h>

#include "base/duration.h"
#include "core/agent_machine.h"

/* How long no progress is well, unless the user says otherwise: as
 * LocalElasticAgent._setup_healthcheck in local_elastic_agent.py has it. */
#define HEALTH_TIMEOUT_SECONDS 60

enum health_phase {
    HEALTH_JOINING,    /* looks for the other nodes, or starts the first workers */
    HEALTH_RUNNING,    /* the workers run */
    HEALTH_RESTARTING, /* ends the workers, and joins again to start new ones */
    HEALTH_DRAINING,   /* ends the workers for good, or waits for other nodes to be done */
};

struct health_facts {
    enum agent_phase phase;
    enum agent_stop_reason stop_reason; /* while STOPPING */
    bool has_started;                   /* some workers have been started before */
    struct wall_time now;
    struct wall_time last_progress;
    struct duration timeout; /* without progress that is well */
};

struct health_verdict {
    bool is_alive;
    enum health_phase phase;
    struct duration silence; /* since the last progress … */
    struct duration timeout; /* … of which so much is well */
};

struct health_verdict health_judge(const struct health_facts *facts);

/* "joining", "running", "restarting", "draining" */
const char *health_phase_name(enum health_phase phase);
/* What that phase is about, in a sentence's words. */
const char *health_phase_meaning(enum health_phase phase);

#endif
