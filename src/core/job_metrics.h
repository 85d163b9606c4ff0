/* SPDX-License-Identifier: BSD-3-Clause */
/* What an agent has done so far, in numbers: how often and how long it joined, started, watched and
 * stopped its workers, why it restarted them, and what its watchdog did. Fed with the agent's own
 * events; knows no clock and no spelling. Compare the functions that are profiled in
 * torch/distributed/elastic/agent/server/api.py and local_elastic_agent.py (@prof). */
#ifndef MUSTER_CORE_JOB_METRICS_H
#define MUSTER_CORE_JOB_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/duration.h"
#include "core/agent_machine.h"
#include "core/event_record.h"

/* What takes its time. */
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
    JOB_RESTART_PEER,              /* one of another node did */
    JOB_RESTART_MEMBERSHIP_CHANGE, /* nodes came or went, and no worker had failed */
    JOB_RESTART_COUNT,
};

/* How often, how long together, and how often it came to nothing. */
struct job_times {
    uint64_t count;
    struct duration sum;
    uint64_t failures;
};

/* A zeroed struct is one of an agent that has not begun. */
struct job_metrics {
    struct job_times activities[JOB_ACTIVITY_COUNT];
    uint64_t restarts[JOB_RESTART_COUNT];
    uint64_t succeeded_workers; /* that have exited with 0, in all attempts */
    uint64_t failed_workers;
    uint64_t expired_timers;
    struct job_times kills; /* of processes by the watchdog, from the deadline to the signal */
    struct instant since;   /* of the phase */
    bool has_cause;         /* of the restart under way */
    enum job_restart_cause cause;
    bool is_cause_open;    /* the restart is under way, and the next round tells why */
    int64_t restarts_paid; /* by the job, as the round joined last told */
};

/* `machine` has taken `event` and was in the phase `before`. */
void job_metrics_step(struct job_metrics *metrics, enum agent_phase before,
    const struct agent_machine *machine, const struct agent_event *event);

void job_metrics_watchdog(struct job_metrics *metrics, enum event_watchdog what,
    const struct event_timer_record *timer, struct wall_time now);

/* "rendezvous"; "worker_failure" */
const char *job_activity_name(enum job_activity activity);
const char *job_restart_cause_name(enum job_restart_cause cause);

#endif
