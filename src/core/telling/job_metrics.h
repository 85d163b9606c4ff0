/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers of what an agent has done so far: how often and how long it joined, and started, watched
 * and stopped its workers; why it restarted them; and what its watchdog did. It counts from the
 * events of the agent machine. It reads no clock, and does not know how the numbers are spelled.
 * Compare the functions that are profiled in torch/distributed/elastic/agent/server/api.py and
 * local_elastic_agent.py (@prof). */
#ifndef MUSTER_CORE_TELLING_JOB_METRICS_H
#define MUSTER_CORE_TELLING_JOB_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/duration.h"
#include "core/agent/agent_machine.h"
#include "core/telling/chronicle_status.h"
#include "core/telling/event_record.h"

/* The metrics of an agent, one by one, with TorchElastic's names: those of the functions that are
 * profiled there (@prof), "SimpleElasticAgent._rendezvous.duration.ms", and those of
 * SimpleElasticAgent._record_metrics, "workers.default.run_total". See
 * torch/distributed/elastic/metrics/api.py and agent/server/api.py. core/telling/job_metrics has
 * what the same agent has done in sum.
 *
 * TorchElastic tells the state of the workers at each look at them, ten times a second. This agent
 * does not look, and tells it when it changes. */

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

/* What the agent spends its time on. */
enum job_activity {
    JOB_ACTIVITY_RENDEZVOUS,
    JOB_ACTIVITY_START,
    JOB_ACTIVITY_MONITOR, /* the workers run */
    JOB_ACTIVITY_STOP,
    JOB_ACTIVITY_EXIT_BARRIER,
    JOB_ACTIVITY_COUNT,
};

enum job_restart_cause {
    JOB_RESTART_WORKER_FAILURE,    /* a worker of this node failed */
    JOB_RESTART_PEER,              /* a worker of another node failed */
    JOB_RESTART_MEMBERSHIP_CHANGE, /* nodes came or went, and no worker had failed */
    JOB_RESTART_COUNT,
};

/* How often, how long in total, and how often it failed. */
struct job_times {
    uint64_t count;
    struct duration sum;
    uint64_t failures;
};

/* A zeroed struct is valid: the agent has not begun. */
struct job_metrics {
    struct job_times activities[JOB_ACTIVITY_COUNT];
    uint64_t restarts[JOB_RESTART_COUNT];
    uint64_t succeeded_workers; /* workers that exited with 0, in all attempts */
    uint64_t failed_workers;    /* by themselves */
    uint64_t stopped_workers;   /* by the agent, since another one failed or the world changed */
    uint64_t expired_timers;
    struct job_times kills; /* of processes by the watchdog; from the deadline to the signal */
    struct instant since;   /* the beginning of the present phase */
    bool has_cause;         /* the cause of the restart under way is known */
    enum job_restart_cause cause;
    bool is_cause_open;    /* a restart is under way, and the next round tells its cause */
    int64_t restarts_paid; /* restarts that the job had used when the last round was joined */
};

/* `machine` has just taken `event`; before it was in the phase `before`. */
void job_metrics_step(struct job_metrics *metrics, enum agent_phase before,
    const struct agent_machine *machine, const struct agent_event *event);

void job_metrics_watchdog(struct job_metrics *metrics, enum event_watchdog what,
    const struct event_timer_record *timer, struct wall_time now);

/* The time of a whole job, in parts that only rise. The account of a job (chronicle_status) moves
 * what it has learnt better: time of training that proves to be taken once more, or time until the
 * first step, which is known when that comes. Here what is told stays told, and the other part has
 * the less later, so that all parts together are never more than the time that has passed. */
enum job_time {
    JOB_TIME_TRAINING_KEPT,
    JOB_TIME_REDONE,
    JOB_TIME_RUNNING, /* without steps */
    JOB_TIME_HANGING,
    JOB_TIME_RECOVERING,
    JOB_TIME_STARTING,
    JOB_TIME_WAITING,
    JOB_TIME_ENDING,
    JOB_TIME_COUNT,
};

/* A zeroed struct is valid: nothing is told. */
struct job_times_told {
    struct duration times[JOB_TIME_COUNT];
};

/* `takes_steps`: workers may tell of steps, so that what is not training yet waits to be known, for
 * ten minutes at most. */
void job_times_told_follow(
    struct job_times_told *told, const struct chronicle_status *status, bool takes_steps);

const char *job_time_name(enum job_time time);
/* Whether it is known for a job that stands so. */
bool job_time_is_known(enum job_time time, const struct chronicle_status *status);

/* The names, for example "rendezvous" and "worker_failure". */
const char *job_activity_name(enum job_activity activity);
const char *job_restart_cause_name(enum job_restart_cause cause);

#endif
