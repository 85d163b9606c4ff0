/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/telling/job_metrics.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

/* The functions of TorchElastic that do what the agent does in a phase. */
static const char rendezvous[] = "SimpleElasticAgent._rendezvous";
static const char assign_ranks[] = "SimpleElasticAgent._assign_worker_ranks";
static const char initialize[] = "SimpleElasticAgent._initialize_workers";
static const char restart[] = "SimpleElasticAgent._restart_workers";
static const char run[] = "SimpleElasticAgent.run";
static const char start[] = "LocalElasticAgent._start_workers";
static const char monitor[] = "LocalElasticAgent._monitor_workers";
static const char stop[] = "LocalElasticAgent._stop_workers";

/* One metric_stream_step or _end. */
struct metric_step {
    const struct metric_stream *stream;
    struct instant now;
    struct wall_time time;
};

/* Takes the name. */
static void emit(const struct metric_step *moment, char *name, int64_t value) {
    const struct metric_sink *sink = &moment->stream->sink;
    const struct metric metric = {name, value, moment->time};
    sink->emit(sink->context, &metric);
    free(name);
}

/* As prof does for a function that began at `since`. */
static void profile(
    const struct metric_step *moment, const char *function, struct instant since, bool is_success) {
    struct duration duration = instant_until(since, moment->now);
    emit(moment, text_format("%s.%s", function, is_success ? "success" : "failure"), 1);
    emit(moment, text_format("%s.duration.ms", function),
        duration.nanoseconds / NANOSECONDS_PER_MILLISECOND);
}

static void emit_of_workers(const struct metric_step *moment, const char *name, int64_t value) {
    emit(moment, text_format("workers.%s.%s", moment->stream->role, name), value);
}

/* What TorchElastic tells when it has looked at the workers: before it uses a restart, which this
 * machine has done in the same step. */
static void look(
    const struct metric_step *moment, const struct agent_machine *machine, const char *state) {
    bool has_used_one =
        machine->phase == AGENT_STOPPING && machine->stop_reason == AGENT_STOP_RESTART;
    int remaining = restart_policy_remaining(&machine->restarts) + (has_used_one ? 1 : 0);
    profile(moment, monitor, moment->now, true);
    emit_of_workers(moment, "remaining_restarts", remaining);
    emit_of_workers(moment, state, 1);
}

static void leave_rendezvous(
    const struct metric_step *moment, const struct agent_machine *machine) {
    const struct metric_stream *stream = moment->stream;
    bool has_joined = machine->phase == AGENT_STARTING;
    profile(moment, rendezvous, stream->since, has_joined);
    if (has_joined) {
        profile(moment, assign_ranks, moment->now, true);
        return;
    }
    profile(moment, initialize, stream->joining_since, false);
    if (stream->is_restarting) {
        profile(moment, restart, stream->restarting_since, false);
    }
}

static void leave_start(const struct metric_step *moment, const struct agent_machine *machine) {
    const struct metric_stream *stream = moment->stream;
    bool has_started = machine->phase == AGENT_RUNNING;
    profile(moment, start, stream->since, has_started);
    profile(moment, initialize, stream->joining_since, has_started);
    if (stream->is_restarting) {
        profile(moment, restart, stream->restarting_since, has_started);
    }
    if (has_started) {
        look(moment, machine, "healthy");
    }
}

/* The workers run no longer. Only their own ends are told: what stops them otherwise is not seen by
 * a look at them. */
static void leave_running(const struct metric_step *moment, const struct agent_machine *machine,
    const struct agent_event *event) {
    if (event->kind == AGENT_EVENT_WORKER_ENDING || event->kind == AGENT_EVENT_WORKER_EXITED ||
        event->kind == AGENT_EVENT_WORKER_STUCK) {
        look(moment, machine, worker_group_has_failure(&machine->workers) ? "failed" : "succeeded");
    }
}

/* _stop_workers is what precedes a restart or a failure. After a success TorchElastic stops
 * nothing, and a signal takes another way there. */
static void leave_stop(const struct metric_step *moment, const struct agent_machine *machine) {
    if (machine->stop_reason != AGENT_STOP_CLEAN_UP && machine->stop_reason != AGENT_STOP_SIGNAL) {
        profile(moment, stop, moment->stream->since, !machine->has_abandoned_processes);
    }
}

static void metric_stream_change_phase(struct metric_stream *stream,
    const struct metric_step *moment, enum agent_phase before, const struct agent_machine *machine,
    const struct agent_event *event) {
    if (before == AGENT_IDLE) {
        stream->began = moment->now;
    } else if (before == AGENT_JOINING) {
        leave_rendezvous(moment, machine);
    } else if (before == AGENT_STARTING) {
        leave_start(moment, machine);
    } else if (before == AGENT_RUNNING) {
        leave_running(moment, machine, event);
    } else if (before == AGENT_STOPPING) {
        leave_stop(moment, machine);
    }
    if (machine->phase == AGENT_JOINING) {
        stream->is_restarting =
            before != AGENT_IDLE && (before != AGENT_HELD || machine->ticket > 1);
        stream->joining_since = moment->now;
        if (before != AGENT_STOPPING && before != AGENT_HELD) {
            stream->restarting_since = moment->now;
        }
    }
    if (machine->phase == AGENT_STOPPING) {
        stream->restarting_since = moment->now;
    }
    stream->since = moment->now;
}

void metric_stream_step(struct metric_stream *stream, enum agent_phase before,
    const struct agent_machine *machine, const struct agent_event *event, struct wall_time time) {
    const struct metric_step moment = {stream, event->now, time};
    if (machine->phase != before) {
        metric_stream_change_phase(stream, &moment, before, machine, event);
    }
}

/* As SimpleElasticAgent._record_metrics, which is not reached where run() raises. */
static void record(
    const struct metric_step *moment, const struct agent_machine *machine, bool is_failed) {
    int maximum = moment->stream->max_restarts;
    int remaining = restart_policy_remaining(&machine->restarts);
    bool has_restarted = remaining != maximum;
    double flakiness = is_failed ? 100 : 100.0 - 100.0 * (remaining + 1.0) / (maximum + 1.0);
    emit_of_workers(moment, "flakiness", (int64_t)flakiness);
    emit_of_workers(moment, "run_total", 1);
    emit_of_workers(moment, "run_success_with_retries", !is_failed && has_restarted);
    emit_of_workers(moment, "run_success_no_retries", !is_failed && !has_restarted);
    emit_of_workers(moment, "run_failed_with_retries", is_failed && has_restarted);
    emit_of_workers(moment, "run_failed_no_retries", is_failed && !has_restarted);
}

void metric_stream_end(struct metric_stream *stream, const struct agent_machine *machine,
    const struct agent_outcome *outcome, struct instant now, struct wall_time time) {
    const struct metric_step moment = {stream, now, time};
    bool has_result = event_plan_agent_end(outcome, &machine->workers) == EVENT_STATE_SUCCEEDED;
    if (has_result) {
        record(&moment, machine, outcome->kind == AGENT_OUTCOME_FAILED);
    }
    profile(&moment, run, stream->began, has_result);
}

/* Job metrics. */

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
    case AGENT_HELD:
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
        (machine->phase == AGENT_STOPPING && machine->stop_reason == AGENT_STOP_RESTART) ||
        (machine->phase == AGENT_HELD && machine->ticket > 0);
    bool has_rejoined = machine->phase == AGENT_JOINING && before != AGENT_JOINING &&
                        before != AGENT_IDLE && (before != AGENT_HELD || machine->ticket > 1);
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

/* Whether the worker was known to fail before it was gone. */
static bool was_ending(const struct worker_group *workers, const struct agent_event *event) {
    for (size_t i = 0; i < workers->failure_count; i++) {
        const struct worker_failure *failure = &workers->failures[i];
        if (failure->local_rank == event->worker_exited.local_rank) {
            return failure->observed.nanoseconds < event->worker_exited.observed.nanoseconds;
        }
    }
    return false;
}

/* What ends while the agent stops all workers is a consequence of that, whatever its exit status.
 */
static uint64_t *counter_of_exit(struct job_metrics *metrics, enum agent_phase before,
    const struct worker_group *workers, const struct agent_event *event) {
    if (!event->worker_exited.exit.is_signal && event->worker_exited.exit.value == 0) {
        return &metrics->succeeded_workers;
    }
    bool is_stopped = before == AGENT_STOPPING && !was_ending(workers, event);
    return is_stopped ? &metrics->stopped_workers : &metrics->failed_workers;
}

void job_metrics_step(struct job_metrics *metrics, enum agent_phase before,
    const struct agent_machine *machine, const struct agent_event *event) {
    if (event->kind == AGENT_EVENT_WORKER_EXITED) {
        *counter_of_exit(metrics, before, &machine->workers, event) += 1;
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

/* The whole job. */

#define UNKNOWN_TIME_SECONDS 600

/* What the account has now. */
static void read_account(
    const struct chronicle_status *status, bool takes_steps, int64_t out_times[JOB_TIME_COUNT]) {
    const struct chronicle_account *account = &status->account;
    int64_t undecided = takes_steps ? status->since_started.nanoseconds : 0;
    if (undecided > UNKNOWN_TIME_SECONDS * (int64_t)NANOSECONDS_PER_SECOND) {
        undecided = 0;
    }
    const int64_t times[JOB_TIME_COUNT] = {
        [JOB_TIME_TRAINING_KEPT] =
            account->states[JOB_TRAINING].nanoseconds - account->redone.nanoseconds,
        [JOB_TIME_REDONE] = account->redone.nanoseconds,
        [JOB_TIME_RUNNING] = account->states[JOB_RUNNING].nanoseconds - undecided,
        [JOB_TIME_HANGING] = account->states[JOB_HANGING].nanoseconds,
        [JOB_TIME_RECOVERING] = account->states[JOB_RECOVERING].nanoseconds,
        [JOB_TIME_STARTING] = account->states[JOB_STARTING].nanoseconds,
        [JOB_TIME_WAITING] = account->states[JOB_WAITING].nanoseconds,
        [JOB_TIME_ENDING] = account->states[JOB_ENDING].nanoseconds,
    };
    memcpy(out_times, times, sizeof times);
}

void job_times_told_follow(
    struct job_times_told *told, const struct chronicle_status *status, bool takes_steps) {
    int64_t times[JOB_TIME_COUNT];
    int64_t wanted = 0; /* by the parts that have become more … */
    int64_t passed = 0; /* … in the time that has passed since they were told */
    read_account(status, takes_steps, times);
    for (int i = 0; i < JOB_TIME_COUNT; i++) {
        times[i] -= told->times[i].nanoseconds;
        passed += times[i];
        wanted += times[i] > 0 ? times[i] : 0;
    }
    double part = wanted > passed ? (double)passed / (double)wanted : 1;
    for (int i = 0; i < JOB_TIME_COUNT && passed > 0; i++) {
        told->times[i].nanoseconds += times[i] > 0 ? (int64_t)((double)times[i] * part) : 0;
    }
}

const char *job_time_name(enum job_time time) {
    static const char *const names[] = {"training_kept", "redone", "running", "hanging",
        "recovering", "starting", "waiting", "ending"};
    return names[time];
}

bool job_time_is_known(enum job_time time, const struct chronicle_status *status) {
    return time == JOB_TIME_TRAINING_KEPT ? status->source != PROGRESS_NONE
           : time == JOB_TIME_REDONE      ? status->account.knows_redone
                                          : true;
}
