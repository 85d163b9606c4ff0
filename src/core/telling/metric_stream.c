/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/telling/metric_stream.h"

#include <stdlib.h>

#include "base/text.h"
#include "core/telling/event_record.h"

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
struct moment {
    const struct metric_stream *stream;
    struct instant now;
    struct wall_time time;
};

/* Takes the name. */
static void emit(const struct moment *moment, char *name, int64_t value) {
    const struct metric_sink *sink = &moment->stream->sink;
    const struct metric metric = {name, value, moment->time};
    sink->emit(sink->context, &metric);
    free(name);
}

/* As prof does for a function that began at `since`. */
static void profile(
    const struct moment *moment, const char *function, struct instant since, bool is_success) {
    struct duration duration = instant_until(since, moment->now);
    emit(moment, text_format("%s.%s", function, is_success ? "success" : "failure"), 1);
    emit(moment, text_format("%s.duration.ms", function),
        duration.nanoseconds / NANOSECONDS_PER_MILLISECOND);
}

static void emit_of_workers(const struct moment *moment, const char *name, int64_t value) {
    emit(moment, text_format("workers.%s.%s", moment->stream->role, name), value);
}

/* What TorchElastic tells when it has looked at the workers: before it uses a restart, which this
 * machine has done in the same step. */
static void look(
    const struct moment *moment, const struct agent_machine *machine, const char *state) {
    bool has_used_one =
        machine->phase == AGENT_STOPPING && machine->stop_reason == AGENT_STOP_RESTART;
    int remaining = restart_policy_remaining(&machine->restarts) + (has_used_one ? 1 : 0);
    profile(moment, monitor, moment->now, true);
    emit_of_workers(moment, "remaining_restarts", remaining);
    emit_of_workers(moment, state, 1);
}

static void leave_rendezvous(const struct moment *moment, const struct agent_machine *machine) {
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

static void leave_start(const struct moment *moment, const struct agent_machine *machine) {
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
static void leave_running(const struct moment *moment, const struct agent_machine *machine,
    const struct agent_event *event) {
    if (event->kind == AGENT_EVENT_WORKER_ENDING || event->kind == AGENT_EVENT_WORKER_EXITED ||
        event->kind == AGENT_EVENT_WORKER_STUCK) {
        look(moment, machine, worker_group_has_failure(&machine->workers) ? "failed" : "succeeded");
    }
}

/* _stop_workers is what precedes a restart or a failure. After a success TorchElastic stops
 * nothing, and a signal takes another way there. */
static void leave_stop(const struct moment *moment, const struct agent_machine *machine) {
    if (machine->stop_reason != AGENT_STOP_CLEAN_UP && machine->stop_reason != AGENT_STOP_SIGNAL) {
        profile(moment, stop, moment->stream->since, !machine->has_abandoned_processes);
    }
}

static void change_phase(struct metric_stream *stream, const struct moment *moment,
    enum agent_phase before, const struct agent_machine *machine, const struct agent_event *event) {
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
        stream->is_restarting = before != AGENT_IDLE;
        stream->joining_since = moment->now;
        if (before != AGENT_STOPPING) {
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
    const struct moment moment = {stream, event->now, time};
    if (machine->phase != before) {
        change_phase(stream, &moment, before, machine, event);
    }
}

/* As SimpleElasticAgent._record_metrics, which is not reached where run() raises. */
static void record(
    const struct moment *moment, const struct agent_machine *machine, bool is_failed) {
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
    const struct moment moment = {stream, now, time};
    bool has_result = event_plan_agent_end(outcome, &machine->workers) == EVENT_STATE_SUCCEEDED;
    if (has_result) {
        record(&moment, machine, outcome->kind == AGENT_OUTCOME_FAILED);
    }
    profile(&moment, run, stream->began, has_result);
}
