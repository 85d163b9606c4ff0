/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/telling/agent_metrics.h"

#include <stdlib.h>

#include "base/memory.h"
#include "core/standby/standby_plan.h"
#include "core/telling/health.h"
#include "core/telling/job_metrics.h"
#include "host/telling/event_thread.h"
#include "wire/telling/metrics_text.h"

#define FILE_SECONDS 30
/* How much later it may be, so that the agent is not woken for it alone. */
#define FILE_SLACK_SECONDS 2
/* How long a disk that does not answer may hold up the end of a job. */
#define DISK_PATIENCE_SECONDS 2

struct agent_metrics {
    struct agent_metrics_settings settings;
    struct event_loop *loop;
    struct text labels; /* of all samples */
    struct job_metrics job;
    struct job_times_told times; /* of the whole job */
    struct tally record_store_operations;
    struct tally log_bytes;
    struct event_thread *file; /* NULL: none is wanted */
    struct event_timer *timer; /* the same */
};

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
static void write_number(const struct metrics_page *page, const char *name, enum metrics_kind kind,
    const char *help, uint64_t value) {
    metrics_text_begin(page, name, kind, help);
    metrics_text_number(page, name, METRICS_NO_LABEL, value);
}

static void write_info(const struct metrics_page *page) {
    static const char version[] = "muster_build_info";
    write_number(page, "muster_info", METRICS_GAUGE, "Always 1; the job this agent belongs to.", 1);
    metrics_text_begin(page, version, METRICS_GAUGE, "Always 1; the version of this agent.");
    metrics_text_number(page, version, (struct metrics_label){"version", MUSTER_VERSION}, 1);
}

static void write_workers(const struct agent_metrics *metrics, const struct agent_machine *machine,
    const struct metrics_page *page) {
    static const char exits[] = "muster_worker_exits_total";
    bool has_workers = machine->phase >= AGENT_STARTING && machine->phase <= AGENT_STOPPING;
    write_number(page, "muster_workers", METRICS_GAUGE, "Workers of this node.",
        (uint64_t)metrics->settings.preparation->worker_count);
    write_number(page, "muster_workers_running", METRICS_GAUGE,
        "Workers of this node that run or are being started.",
        has_workers ? machine->workers.running_count : 0);
    metrics_text_begin(page, exits, METRICS_COUNTER, "Workers that have exited, in all attempts.");
    metrics_text_number(
        page, exits, (struct metrics_label){"result", "succeeded"}, metrics->job.succeeded_workers);
    metrics_text_number(
        page, exits, (struct metrics_label){"result", "failed"}, metrics->job.failed_workers);
    metrics_text_number(
        page, exits, (struct metrics_label){"result", "stopped"}, metrics->job.stopped_workers);
}

static void write_phase(const struct agent_machine *machine, const struct metrics_page *page) {
    static const char name[] = "muster_phase";
    struct health_facts facts = {.phase = machine->phase,
        .stop_reason = machine->stop_reason,
        .has_started = machine->ticket > 1};
    enum health_phase present = health_judge(&facts).phase;
    metrics_text_begin(page, name, METRICS_GAUGE, "1 for the phase the agent is in.");
    for (int phase = HEALTH_JOINING; phase <= HEALTH_DRAINING; phase++) {
        const char *label = health_phase_name((enum health_phase)phase);
        metrics_text_number(
            page, name, (struct metrics_label){"phase", label}, phase == (int)present ? 1 : 0);
    }
}

static void write_restarts(const struct agent_metrics *metrics, const struct agent_machine *machine,
    const struct metrics_page *page) {
    static const char name[] = "muster_restarts_total";
    metrics_text_begin(page, name, METRICS_COUNTER, "Restarts of this node's workers, by cause.");
    for (int cause = 0; cause < JOB_RESTART_COUNT; cause++) {
        const char *label = job_restart_cause_name((enum job_restart_cause)cause);
        metrics_text_number(
            page, name, (struct metrics_label){"cause", label}, metrics->job.restarts[cause]);
    }
    write_number(page, "muster_restarts_left", METRICS_GAUGE,
        "Restarts that failures may still cost.",
        (uint64_t)restart_policy_remaining(&machine->restarts));
}

static void write_activities(const struct agent_metrics *metrics, const struct metrics_page *page) {
    static const char durations[] = "muster_activity_seconds";
    static const char failures[] = "muster_activity_failures_total";
    metrics_text_begin(page, durations, METRICS_SUMMARY,
        "How often the agent was done with joining, starting, watching and stopping its workers, "
        "and how long that took.");
    for (int i = 0; i < JOB_ACTIVITY_COUNT; i++) {
        const struct job_times *times = &metrics->job.activities[i];
        const char *label = job_activity_name((enum job_activity)i);
        metrics_text_summary(
            page, durations, (struct metrics_label){"activity", label}, times->count, times->sum);
    }
    metrics_text_begin(page, failures, METRICS_COUNTER, "How often that came to a bad end.");
    for (int i = 0; i < JOB_ACTIVITY_COUNT; i++) {
        const char *label = job_activity_name((enum job_activity)i);
        metrics_text_number(page, failures, (struct metrics_label){"activity", label},
            metrics->job.activities[i].failures);
    }
}

static void write_timers(const struct agent_metrics *metrics, const struct agent_watchdog *watchdog,
    const struct metrics_page *page) {
    static const char latency[] = "muster_timer_kill_latency_seconds";
    if (watchdog == NULL) {
        return;
    }
    write_number(page, "muster_timers_live", METRICS_GAUGE, "Timers that workers hold.",
        agent_watchdog_timer_count(watchdog));
    write_number(page, "muster_timer_requests_total", METRICS_COUNTER,
        "Requests to hold or release a timer.", agent_watchdog_request_count(watchdog));
    write_number(page, "muster_timers_expired_total", METRICS_COUNTER, "Timers that have expired.",
        metrics->job.expired_timers);
    metrics_text_begin(page, latency, METRICS_SUMMARY,
        "Processes ended because a timer expired, and the time from its deadline to the signal.");
    metrics_text_summary(
        page, latency, METRICS_NO_LABEL, metrics->job.kills.count, metrics->job.kills.sum);
}

/* A store in a file is served by nobody, and a node that serves no store has nothing to count. */
static void write_stores(struct agent_metrics *metrics, const struct metrics_page *page) {
    static const char name[] = "muster_store_operations_total";
    metrics_text_begin(page, name, METRICS_COUNTER,
        "Requests carried out by the stores that this process serves: the workers', and that of a "
        "rendezvous of nodes that come and go.");
    metrics_text_number(page, name, (struct metrics_label){"store", "workers"},
        tally_read(metrics->settings.worker_store));
    metrics_text_number(page, name, (struct metrics_label){"store", "rendezvous"},
        tally_read(&metrics->record_store_operations));
}

static void write_standby(const struct standby_plan *standby, const struct metrics_page *page) {
    static const char dirty[] = "muster_standby_dirty";
    if (standby == NULL) {
        return;
    }
    write_number(page, "muster_standby_ready", METRICS_GAUGE,
        "Standby workers that wait to take the place of a worker.",
        (uint64_t)standby_plan_count(standby, STANDBY_READY));
    write_number(page, "muster_standby_used_total", METRICS_COUNTER,
        "Workers that were started from standby.", standby_plan_used(standby));
    metrics_text_begin(page, dirty, METRICS_GAUGE,
        "1 for the reason for which this job has no standby workers any more.");
    for (int why = STANDBY_OFF_NONE + 1; why < STANDBY_OFF_COUNT; why++) {
        const char *label = standby_off_name((enum standby_off)why);
        metrics_text_number(page, dirty, (struct metrics_label){"reason", label},
            why == (int)standby_plan_off(standby) ? 1 : 0);
    }
}

static void write_node(const struct agent_metrics_facts *facts, const struct metrics_page *page) {
    static const char clock[] = "muster_node_clock_offset_seconds";
    struct duration offset;
    if (facts->placement != NULL && facts->placement->group_world_size > 0) {
        write_number(page, "muster_node_rank", METRICS_GAUGE,
            "The rank of this node in the world that it has joined last.",
            (uint64_t)facts->placement->group_rank);
    }
    write_number(page, "muster_node_failed_first_total", METRICS_COUNTER,
        "How often a worker of this node has failed before all others that this node knows of.",
        (uint64_t)facts->failed_first);
    if (facts->step >= 0) {
        write_number(page, "muster_node_step", METRICS_GAUGE,
            "The step of the worker of this node that is least far.", (uint64_t)facts->step);
    }
    if (agent_job_chronicle_find_clock_offset(facts->job, &offset)) {
        metrics_text_begin(page, clock, METRICS_GAUGE,
            "By how much the clock of this node is ahead of that of the job's host.");
        metrics_text_real(page, clock, METRICS_NO_LABEL, duration_seconds(offset));
    }
}

/* The whole job, of its host. */

struct job_page {
    struct agent_metrics *metrics;
    const struct agent_metrics_facts *facts;
    const struct metrics_page *page;
};

static void write_job_state(
    const struct chronicle_status *status, const struct metrics_page *page) {
    static const char name[] = "muster_job_state";
    metrics_text_begin(page, name, METRICS_GAUGE, "1 for the state that the job is in.");
    for (int state = 0; state < JOB_STATE_COUNT; state++) {
        const char *label = job_state_name((enum job_state)state);
        metrics_text_number(page, name, (struct metrics_label){"state", label},
            state == (int)status->state ? 1 : 0);
    }
}

static void write_job_nodes(const struct job_page *job, const struct chronicle_status *status) {
    static const char name[] = "muster_job_nodes";
    const struct launch_config *config = job->metrics->settings.config;
    const struct {
        const char *kind;
        int64_t count; /* negative: not known */
    } nodes[] = {
        {"here", status->node_count > 0 ? status->node_count : status->here},
        {"min", config->minimum_nodes},
        {"max", config->maximum_nodes},
        {"lost", status->in_state[CHRONICLE_NODE_MISSED]},
        {"spare", job->facts->spares},
    };
    metrics_text_begin(job->page, name, METRICS_GAUGE,
        "Nodes of the job: in its world or waiting for the first one, as few and as many as there "
        "may be, lost and not come back, and waiting for a place.");
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++) {
        if (nodes[i].count >= 0) {
            metrics_text_number(job->page, name, (struct metrics_label){"kind", nodes[i].kind},
                (uint64_t)nodes[i].count);
        }
    }
}

static void write_job_world(
    const struct chronicle_status *status, const struct metrics_page *page) {
    static const char progress[] = "muster_job_last_progress_timestamp_seconds";
    if (status->node_count > 0) {
        write_number(page, "muster_job_workers", METRICS_GAUGE, "Workers of the job's world.",
            (uint64_t)status->worker_count);
    }
    if (status->has_round && status->round >= 0) {
        write_number(page, "muster_job_round", METRICS_GAUGE, "The round of the rendezvous.",
            (uint64_t)status->round);
    }
    if (status->max_restarts >= 0) {
        write_number(page, "muster_job_restarts_used", METRICS_GAUGE,
            "Restarts that the job has used of those that it may.", (uint64_t)status->restarts);
        write_number(page, "muster_job_restarts_max", METRICS_GAUGE,
            "Restarts that the job may use.", (uint64_t)status->max_restarts);
    }
    if (status->step >= 0) {
        write_number(page, "muster_job_step", METRICS_GAUGE,
            "The step that was told last, each ten seconds.", (uint64_t)status->step);
        metrics_text_begin(page, progress, METRICS_GAUGE, "When that step was taken.");
        metrics_text_real(page, progress, METRICS_NO_LABEL,
            (double)status->stepped.nanoseconds / NANOSECONDS_PER_SECOND);
    }
}

static void write_job_times(const struct job_page *job, const struct chronicle_status *status) {
    static const char name[] = "muster_job_seconds_total";
    struct job_times_told *told = &job->metrics->times;
    job_times_told_follow(told, status, job->metrics->settings.config->has_progress);
    metrics_text_begin(job->page, name, METRICS_COUNTER, "What the job has spent its time on.");
    for (int i = 0; i < JOB_TIME_COUNT; i++) {
        const char *label = job_time_name((enum job_time)i);
        if (job_time_is_known((enum job_time)i, status)) {
            metrics_text_real(job->page, name, (struct metrics_label){"kind", label},
                duration_seconds(told->times[i]));
        }
    }
}

static void write_job_recoveries(
    const struct chronicle_status *status, const struct metrics_page *page) {
    static const char total[] = "muster_job_recoveries_total";
    static const char seconds[] = "muster_job_recovery_seconds";
    metrics_text_begin(
        page, total, METRICS_COUNTER, "Recoveries that are over, by what the first reason was.");
    for (int cause = CHRONICLE_CAUSE_NONE + 1; cause < CHRONICLE_CAUSE_COUNT; cause++) {
        const char *label = chronicle_cause_name((enum chronicle_cause)cause);
        metrics_text_number(
            page, total, (struct metrics_label){"cause", label}, status->tally.by_cause[cause]);
    }
    write_number(page, "muster_job_hangs_total", METRICS_COUNTER,
        "How often no rank has taken a step for too long, though the workers lived.",
        (uint64_t)status->hangs);
    metrics_text_begin(page, seconds, METRICS_HISTOGRAM,
        "How long the phases of these recoveries took, and the whole of each.");
    for (int moment = 0; moment < RECOVERY_MOMENT_COUNT; moment++) {
        const struct recovery_times *times = &status->tally.phases[moment];
        const struct metrics_buckets buckets = {recovery_bounds, times->counts, RECOVERY_BUCKETS};
        const char *label = moment == RECOVERY_FAILED
                                ? "whole"
                                : recovery_moment_name((enum recovery_moment)moment);
        metrics_text_histogram(page, seconds, (struct metrics_label){"phase", label}, &buckets,
            times->count, times->sum);
    }
}

static void write_job_slow(const struct chronicle_status *status, const struct metrics_page *page) {
    static const char slow[] = "muster_job_slow_ratio";
    if (status->slow_at.nanoseconds > 0) {
        metrics_text_begin(page, slow, METRICS_GAUGE,
            "How many times as long a step as the others of its node a slow rank of this world was "
            "busy.");
        metrics_text_real(page, slow, METRICS_NO_LABEL, status->slow_ratio);
        if (status->slow_rank >= 0) {
            write_number(page, "muster_job_slow_rank", METRICS_GAUGE, "That rank.",
                (uint64_t)status->slow_rank);
        }
    }
}

static void write_job(void *context, const struct chronicle_status *status) {
    const struct job_page *job = context;
    if (status->has_begun) {
        write_job_state(status, job->page);
        write_job_nodes(job, status);
        write_job_world(status, job->page);
        write_job_times(job, status);
        write_job_recoveries(status, job->page);
        write_job_slow(status, job->page);
    }
}

static void write_all(struct agent_metrics *metrics, bool is_last, struct text *out) {
    struct agent_metrics_facts facts = {.step = -1, .spares = -1};
    struct metrics_page page = {out, text_string(&metrics->labels)};
    struct job_page job = {metrics, &facts, &page};
    metrics->settings.find(metrics->settings.context, &facts);
    write_info(&page);
    write_phase(facts.machine, &page);
    write_workers(metrics, facts.machine, &page);
    write_restarts(metrics, facts.machine, &page);
    write_activities(metrics, &page);
    write_timers(metrics, facts.watchdog, &page);
    write_standby(facts.standby, &page);
    write_stores(metrics, &page);
    write_number(&page, "muster_log_bytes_total", METRICS_COUNTER,
        "Bytes that workers wrote into streams that the agent reads.",
        tally_read(&metrics->log_bytes));
    write_node(&facts, &page);
    (void)agent_job_chronicle_see(facts.job, is_last, write_job, &job);
}

void agent_metrics_write(struct agent_metrics *metrics, struct text *out) {
    write_all(metrics, false, out);
}

/* The file. */

static void write_file(struct agent_metrics *metrics, bool is_last) {
    struct text page = {0};
    write_all(metrics, is_last, &page);
    event_thread_append(metrics->file, text_string(&page));
    text_clear(&page);
}

static void is_time(void *context) {
    struct agent_metrics *metrics = context;
    struct instant now = event_loop_now(metrics->loop);
    write_file(metrics, false);
    event_timer_set_between(metrics->timer, instant_after(now, duration_from_seconds(FILE_SECONDS)),
        instant_after(now, duration_from_seconds(FILE_SECONDS + FILE_SLACK_SECONDS)));
}

static void open_file(struct agent_metrics *metrics) {
    struct failure failure = {0};
    const struct event_thread_settings settings = {
        .loop = metrics->loop,
        .log = metrics->settings.log,
        .path = metrics->settings.config->metrics_file,
        .patience = duration_from_seconds(DISK_PATIENCE_SECONDS),
        .is_opened_later = true,
        .replaces = true,
        .what = "metrics",
    };
    if (event_thread_new(&settings, &metrics->file, &failure) != FAILURE_NONE) {
        log_warning(metrics->settings.log, "no metrics are written to '%s': %s", settings.path,
            failure.message);
        metrics->file = NULL;
        return;
    }
    metrics->timer = event_timer_new(metrics->loop, is_time, metrics);
    event_timer_set(metrics->timer, event_loop_now(metrics->loop));
}

void agent_metrics_end(struct agent_metrics *metrics) {
    if (metrics != NULL && metrics->file != NULL) {
        write_file(metrics, true);
        event_thread_free(metrics->file);
        metrics->file = NULL;
        event_timer_free(metrics->timer);
        metrics->timer = NULL;
    }
}

/* Life. */

struct agent_metrics *agent_metrics_new(
    struct event_loop *loop, const struct agent_metrics_settings *settings) {
    const struct launch_config *config = settings->config;
    if (!config->serves_health && config->metrics_file == NULL) {
        return NULL;
    }
    struct agent_metrics *metrics = memory_allocate(sizeof *metrics);
    *metrics = (struct agent_metrics){.settings = *settings, .loop = loop};
    const struct metrics_label labels[] = {{"run_id", settings->preparation->run_id},
        {"node", settings->preparation->node_name}, {"role", config->role}};
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        metrics_text_append_label(labels[i], &metrics->labels);
    }
    if (config->metrics_file != NULL) {
        open_file(metrics);
    }
    return metrics;
}

void agent_metrics_free(struct agent_metrics *metrics) {
    if (metrics != NULL) {
        event_timer_free(metrics->timer);
        event_thread_free(metrics->file);
        text_clear(&metrics->labels);
        free(metrics);
    }
}
