/* SPDX-License-Identifier: BSD-3-Clause */
/* The metrics of an agent, one by one, with TorchElastic's names: those of the functions that are
 * profiled there (@prof), "SimpleElasticAgent._rendezvous.duration.ms", and those of
 * SimpleElasticAgent._record_metrics, "workers.default.run_total". See
 * torch/distributed/elastic/metrics/api.py and agent/server/api.py. core/telling/job_metrics has
 * what the same agent has done in sum.
 *
 * TorchElastic tells the state of the workers at each look at them, ten times a second. This agent
 * does not look, and tells it when it changes. */
#ifndef MUSTER_CORE_TELLING_METRIC_STREAM_H
#define MUSTER_CORE_TELLING_METRIC_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/duration.h"
#include "core/agent/agent_machine.h"

/* The group of all these. */
#define METRIC_GROUP "torchelastic"

struct metric {
    char *name;
    int64_t value;
    struct wall_time time;
};

/* Called for each metric; it is borrowed. */
struct metric_sink {
    void (*emit)(void *context, const struct metric *metric);
    void *context;
};

/* Begin with the first three. */
struct metric_stream {
    const char *role;
    int max_restarts;
    struct metric_sink sink;
    struct instant began;
    struct instant since;         /* the beginning of the present phase */
    struct instant joining_since; /* or of the stop before it, … */
    struct instant restarting_since;
    bool is_restarting; /* … which began with a stop */
};

/* `machine` has taken `event`, at this time; before it was in the phase `before`. */
void metric_stream_step(struct metric_stream *stream, enum agent_phase before,
    const struct agent_machine *machine, const struct agent_event *event, struct wall_time time);

/* The agent has ended. */
void metric_stream_end(struct metric_stream *stream, const struct agent_machine *machine,
    const struct agent_outcome *outcome, struct instant now, struct wall_time time);

#endif
