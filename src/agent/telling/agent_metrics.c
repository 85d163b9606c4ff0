/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/telling/agent_metrics.h"

#include <stdlib.h>

#include "base/memory.h"
#include "core/standby/standby_transcript.h"
#include "core/telling/health.h"
#include "core/telling/job_metrics.h"
#include "wire/telling/metrics_text.h"

struct agent_metrics {
    const struct launch_config *config;
    const struct agent_preparation *preparation;
    struct job_metrics job;
    struct tally *worker_store_operations;
    struct tally record_store_operations;
    struct tally log_bytes;
};

struct agent_metrics *agent_metrics_new(const struct launch_config *config,
    const struct agent_preparation *preparation, struct tally *worker_store) {
    if (!config->serves_health) {
        return NULL;
    }
    struct agent_metrics *metrics = memory_allocate(sizeof *metrics);
    metrics->config = config;
    metrics->preparation = preparation;
    metrics->worker_store_operations = worker_store;
    return metrics;
}

void agent_metrics_free(struct agent_metrics *metrics) {
    free(metrics);
}

struct tally *agent_metrics_record_store_operations(struct agent_metrics *metrics) {
    return metrics == NULL ? NULL : &metrics->record_store_operations;
}

struct tally *agent_metrics_log_bytes(struct agent_metrics *metrics) {
    return metrics == NULL ? NULL : &metrics->log_bytes;
}

void agent_metrics_step(struct agent_metrics *metrics, enum agent_phase before,
    const struct agent_machine *machine, const struct agent_event *event) {
    if (metrics != NULL) {
        job_metrics_step(&metrics->job, before, machine, event);
    }
}

void agent_metrics_watchdog(struct agent_metrics *metrics, enum event_watchdog what,
    const struct event_timer_record *timer, struct wall_time now) {
    if (metrics != NULL) {
        job_metrics_watchdog(&metrics->job, what, timer, now);
    }
}

/* One family of one sample. */
static void write_number(
    struct text *out, const char *name, enum metrics_kind kind, const char *help, uint64_t value) {
    metrics_text_begin(out, name, kind, help);
    metrics_text_number(out, name, METRICS_NO_LABEL, value);
}

static void write_job(const struct agent_metrics *metrics, struct text *out) {
    static const char info[] = "muster_info";
    metrics_text_begin(out, info, METRICS_GAUGE, "Always 1; the job this agent belongs to.");
    metrics_text_number(
        out, info, (struct metrics_label){"run_id", metrics->preparation->run_id}, 1);
}

static void write_workers(
    const struct agent_metrics *metrics, const struct agent_machine *machine, struct text *out) {
    static const char exits[] = "muster_worker_exits_total";
    bool has_workers = machine->phase >= AGENT_STARTING && machine->phase <= AGENT_STOPPING;
    write_number(out, "muster_workers", METRICS_GAUGE, "Workers of this node.",
        (uint64_t)metrics->preparation->worker_count);
    write_number(out, "muster_workers_running", METRICS_GAUGE,
        "Workers of this node that run or are being started.",
        has_workers ? machine->workers.running_count : 0);
    metrics_text_begin(out, exits, METRICS_COUNTER, "Workers that have exited, in all attempts.");
    metrics_text_number(
        out, exits, (struct metrics_label){"result", "succeeded"}, metrics->job.succeeded_workers);
    metrics_text_number(
        out, exits, (struct metrics_label){"result", "failed"}, metrics->job.failed_workers);
    metrics_text_number(
        out, exits, (struct metrics_label){"result", "stopped"}, metrics->job.stopped_workers);
}

static void write_phase(const struct agent_machine *machine, struct text *out) {
    static const char name[] = "muster_phase";
    struct health_facts facts = {.phase = machine->phase,
        .stop_reason = machine->stop_reason,
        .has_started = machine->ticket > 1};
    enum health_phase present = health_judge(&facts).phase;
    metrics_text_begin(out, name, METRICS_GAUGE, "1 for the phase the agent is in.");
    for (int phase = HEALTH_JOINING; phase <= HEALTH_DRAINING; phase++) {
        const char *label = health_phase_name((enum health_phase)phase);
        metrics_text_number(
            out, name, (struct metrics_label){"phase", label}, phase == (int)present ? 1 : 0);
    }
}

static void write_restarts(
    const struct agent_metrics *metrics, const struct agent_machine *machine, struct text *out) {
    static const char name[] = "muster_restarts_total";
    metrics_text_begin(out, name, METRICS_COUNTER, "Restarts of this node's workers, by cause.");
    for (int cause = 0; cause < JOB_RESTART_COUNT; cause++) {
        const char *label = job_restart_cause_name((enum job_restart_cause)cause);
        metrics_text_number(
            out, name, (struct metrics_label){"cause", label}, metrics->job.restarts[cause]);
    }
    write_number(out, "muster_restarts_left", METRICS_GAUGE,
        "Restarts that failures may still cost.",
        (uint64_t)restart_policy_remaining(&machine->restarts));
}

static void write_activities(const struct agent_metrics *metrics, struct text *out) {
    static const char durations[] = "muster_activity_seconds";
    static const char failures[] = "muster_activity_failures_total";
    metrics_text_begin(out, durations, METRICS_SUMMARY,
        "How often the agent was done with joining, starting, watching and stopping its workers, "
        "and how long that took.");
    for (int i = 0; i < JOB_ACTIVITY_COUNT; i++) {
        const struct job_times *times = &metrics->job.activities[i];
        const char *label = job_activity_name((enum job_activity)i);
        metrics_text_summary(
            out, durations, (struct metrics_label){"activity", label}, times->count, times->sum);
    }
    metrics_text_begin(out, failures, METRICS_COUNTER, "How often that came to a bad end.");
    for (int i = 0; i < JOB_ACTIVITY_COUNT; i++) {
        const char *label = job_activity_name((enum job_activity)i);
        metrics_text_number(out, failures, (struct metrics_label){"activity", label},
            metrics->job.activities[i].failures);
    }
}

static void write_timers(
    const struct agent_metrics *metrics, const struct agent_watchdog *watchdog, struct text *out) {
    static const char latency[] = "muster_timer_kill_latency_seconds";
    if (watchdog == NULL) {
        return;
    }
    write_number(out, "muster_timers_live", METRICS_GAUGE, "Timers that workers hold.",
        agent_watchdog_timer_count(watchdog));
    write_number(out, "muster_timer_requests_total", METRICS_COUNTER,
        "Requests to hold or release a timer.", agent_watchdog_request_count(watchdog));
    write_number(out, "muster_timers_expired_total", METRICS_COUNTER, "Timers that have expired.",
        metrics->job.expired_timers);
    metrics_text_begin(out, latency, METRICS_SUMMARY,
        "Processes ended because a timer expired, and the time from its deadline to the signal.");
    metrics_text_summary(
        out, latency, METRICS_NO_LABEL, metrics->job.kills.count, metrics->job.kills.sum);
}

/* A store in a file is served by nobody, and a node that serves no store has nothing to count. */
static void write_stores(struct agent_metrics *metrics, struct text *out) {
    static const char name[] = "muster_store_operations_total";
    metrics_text_begin(out, name, METRICS_COUNTER,
        "Requests carried out by the stores that this process serves: the workers', and that of a "
        "rendezvous of nodes that come and go.");
    metrics_text_number(out, name, (struct metrics_label){"store", "workers"},
        tally_read(metrics->worker_store_operations));
    metrics_text_number(out, name, (struct metrics_label){"store", "rendezvous"},
        tally_read(&metrics->record_store_operations));
}

static void write_standby(const struct standby_plan *standby, struct text *out) {
    static const char dirty[] = "muster_standby_dirty";
    if (standby == NULL) {
        return;
    }
    write_number(out, "muster_standby_ready", METRICS_GAUGE,
        "Standby workers that wait to take the place of a worker.",
        (uint64_t)standby_plan_count(standby, STANDBY_READY));
    write_number(out, "muster_standby_used_total", METRICS_COUNTER,
        "Workers that were started from standby.", standby_plan_used(standby));
    metrics_text_begin(out, dirty, METRICS_GAUGE,
        "1 for the reason for which this job has no standby workers any more.");
    for (int why = STANDBY_OFF_NONE + 1; why < STANDBY_OFF_COUNT; why++) {
        const char *label = standby_off_name((enum standby_off)why);
        metrics_text_number(out, dirty, (struct metrics_label){"reason", label},
            why == (int)standby_plan_off(standby) ? 1 : 0);
    }
}

void agent_metrics_write(struct agent_metrics *metrics, const struct agent_machine *machine,
    const struct agent_watchdog *watchdog, const struct standby_plan *standby, struct text *out) {
    write_job(metrics, out);
    write_phase(machine, out);
    write_workers(metrics, machine, out);
    write_restarts(metrics, machine, out);
    write_activities(metrics, out);
    write_timers(metrics, watchdog, out);
    write_standby(standby, out);
    write_stores(metrics, out);
    write_number(out, "muster_log_bytes_total", METRICS_COUNTER,
        "Bytes that workers wrote into streams that the agent reads.",
        tally_read(&metrics->log_bytes));
}
