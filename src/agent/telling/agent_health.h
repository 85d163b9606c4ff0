/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers probes over HTTP where $TORCHELASTIC_HEALTH_CHECK_PORT asks for it: /health, and
 * /metrics for Prometheus. A job is not
 * ended because nobody can ask for its health: what keeps the server from starting is a warning.
 * Compare LocalElasticAgent._setup_healthcheck in
 * torch/distributed/elastic/agent/server/local_elastic_agent.py, which starts it only after the
 * first rendezvous. */
#ifndef MUSTER_AGENT_TELLING_AGENT_HEALTH_H
#define MUSTER_AGENT_TELLING_AGENT_HEALTH_H

#include "agent/workers/agent_preparation.h"
#include "base/log.h"
#include "core/agent/agent_machine.h"
#include "core/launch/launch_config.h"
#include "host/loop/event_loop.h"

struct agent_health;

struct agent_health_settings {
    const struct launch_config *config; /* borrowed, as all of this */
    const struct agent_preparation *preparation;
    const struct agent_machine *machine;
    const struct log *log;
    struct wall_time (*last_progress)(void *context); /* of the watchdog; now without one */
    void (*write_metrics)(void *context, struct text *out);
    void *context;
};

/* NULL where it is not asked for or cannot be. */
struct agent_health *agent_health_new(
    struct event_loop *loop, const struct agent_health_settings *settings);
/* Accepts NULL. */
void agent_health_free(struct agent_health *health);

#endif
