/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/telling/job_metrics.h"

static void add_time(struct job_times *times, struct duration duration, bool has_failed) {
    times->count++;
    times->sum.nanoseconds += duration.nanoseconds;
    times->failures += has_failed ? 1 : 0;
}

/* The activity of an agent in this phase; JOB_ACTIVITY_COUNT when it has none. */
static enum job_activity activity_of(enum agent_phase phase) {
    switch (phase) {
    case AGENT_JOINING:
        return JOB_ACTIVITY_RENDEZVOUS;
    case AGENT_STARTING:
        return JOB_ACTIVITY_START;
    case AGENT_RUNNING:
        return JOB_ACTIVITY_MONITOR;
    case AGENT_STOPPING:
        return JOB_ACTIVITY_STOP;
    case AGENT_LEAVING:
        return JOB_ACTIVITY_EXIT_BARRIER;
    case AGENT_IDLE:
    case AGENT_DOUBTING:
    case AGENT_DONE:
    case AGENT_PHASE_COUNT:
        break;
    }
    return JOB_ACTIVITY_COUNT;
}

static bool has_failed(enum job_activity activity, const struct agent_machine *machine,
    const struct agent_event *event) {
    switch (activity) {
    case JOB_ACTIVITY_RENDEZVOUS:
        return event->kind == AGENT_EVENT_JOIN_FAILED;
    case JOB_ACTIVITY_START:
        return event->kind == AGENT_EVENT_START_FAILED;
    case JOB_ACTIVITY_MONITOR:
        return worker_group_has_failure(&machine->workers);
    case JOB_ACTIVITY_STOP:
        return machine->has_abandoned_processes;
    case JOB_ACTIVITY_EXIT_BARRIER:
        return event->kind == AGENT_EVENT_BARRIER_FAILED;
    case JOB_ACTIVITY_COUNT:
        break;
    }
    return false;
}

static void change_phase(struct job_metrics *metrics, enum agent_phase before,
    const struct agent_machine *machine, const struct agent_event *event) {
    enum job_activity activity = activity_of(before);
    if (activity != JOB_ACTIVITY_COUNT) {
        add_time(&metrics->activities[activity], instant_until(metrics->since, event->now),
            has_failed(activity, machine, event));
    }
    metrics->since = event->now;
}

static void note_cause(struct job_metrics *metrics, const struct agent_event *event) {
    if (metrics->has_cause) {
        return;
    }
    metrics->has_cause = true;
    metrics->cause = event->kind == AGENT_EVENT_PEER_RESTART ? JOB_RESTART_PEER
                     : event->kind == AGENT_EVENT_ROUND_OVER ? JOB_RESTART_MEMBERSHIP_CHANGE
                                                             : JOB_RESTART_WORKER_FAILURE;
}

/* A restart that is given up while the workers are being stopped does not count. */
static void follow_restart(struct job_metrics *metrics, enum agent_phase before,
    const struct agent_machine *machine, const struct agent_event *event) {
    bool is_restarting =
        machine->phase == AGENT_STOPPING && machine->stop_reason == AGENT_STOP_RESTART;
    bool has_rejoined =
        machine->phase == AGENT_JOINING && before != AGENT_JOINING && before != AGENT_IDLE;
    if (is_restarting || has_rejoined) {
        note_cause(metrics, event);
    }
    if (has_rejoined && metrics->cause == JOB_RESTART_MEMBERSHIP_CHANGE) {
        metrics->is_cause_open = true;
    } else if (has_rejoined) {
        metrics->restarts[metrics->cause]++;
    }
    if (!is_restarting) {
        metrics->has_cause = false;
    }
}

/* When a round ends, this node does not know whether a worker of another node had failed. The next
 * round tells whether the job has used a restart. */
static void learn_cause(struct job_metrics *metrics, const struct agent_event *event) {
    bool was_paid = event->joined.restarts > metrics->restarts_paid;
    if (metrics->is_cause_open) {
        metrics->restarts[was_paid ? JOB_RESTART_PEER : JOB_RESTART_MEMBERSHIP_CHANGE]++;
    }
    metrics->is_cause_open = false;
    metrics->restarts_paid = event->joined.restarts;
}

void job_metrics_step(struct job_metrics *metrics, enum agent_phase before,
    const struct agent_machine *machine, const struct agent_event *event) {
    if (event->kind == AGENT_EVENT_WORKER_EXITED) {
        bool is_success =
            !event->worker_exited.exit.is_signal && event->worker_exited.exit.value == 0;
        metrics->succeeded_workers += is_success ? 1 : 0;
        metrics->failed_workers += is_success ? 0 : 1;
    }
    if (machine->phase != before) {
        change_phase(metrics, before, machine, event);
    }
    follow_restart(metrics, before, machine, event);
    if (before == AGENT_JOINING && machine->phase == AGENT_STARTING) {
        learn_cause(metrics, event);
    }
}

void job_metrics_watchdog(struct job_metrics *metrics, enum event_watchdog what,
    const struct event_timer_record *timer, struct wall_time now) {
    if (what == EVENT_WATCHDOG_TIMER_EXPIRED) {
        metrics->expired_timers++;
    } else if (what == EVENT_WATCHDOG_KILL) {
        int64_t late = now.nanoseconds - timer->expiration.nanoseconds;
        add_time(&metrics->kills, (struct duration){late > 0 ? late : 0}, false);
    }
}

const char *job_activity_name(enum job_activity activity) {
    static const char *const names[] = {
        "rendezvous", "start", "monitor", "stop", "exit_barrier", "none"};
    return names[activity];
}

const char *job_restart_cause_name(enum job_restart_cause cause) {
    static const char *const names[] = {"worker_failure", "peer", "membership_change", "none"};
    return names[cause];
}
