/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/agent.h"

#include <stdlib.h>
#include <unistd.h>

#include "agent/agent_events.h"
#include "agent/agent_report.h"
#include "agent/agent_state.h"
#include "agent/attempt_logs.h"
#include "core/signal_name.h"
#include "host/descriptor_limit.h"

#define EXIT_JOB_FAILED 1
/* How long a console that takes nothing may hold up the end of a job. */
#define CONSOLE_PATIENCE_SECONDS 30

static enum failure_code start_guardian(struct agent *agent, struct failure *failure) {
    struct text_list fingerprint = {0};
    if (agent->preparation.logs.run_path != NULL) {
        text_list_add_taken(&fingerprint,
            text_format("TORCHELASTIC_ERROR_FILE=%s/", agent->preparation.logs.run_path));
    } else if (agent->config->run_id == NULL) { /* a random one, which nobody else can have */
        text_list_add_taken(
            &fingerprint, text_format("TORCHELASTIC_RUN_ID=%s", agent->preparation.run_id));
    }
    enum failure_code code = guardian_start(&fingerprint, &agent->guardian, failure);
    text_list_clear(&fingerprint);
    return code;
}

/* Events come throughout the job: a console that takes none of them must not hold it up. */
static bool needs_log_thread(const struct agent *agent) {
    return attempt_logs_need_thread(agent->config, &agent->preparation) ||
           agent->config->event_handler == LAUNCH_EVENTS_CONSOLE;
}

static enum failure_code start_log_thread(struct agent *agent, struct failure *failure) {
    if (!needs_log_thread(agent)) {
        return FAILURE_NONE;
    }
    struct log_thread_settings settings = {
        .loop = agent->loop,
        .log = agent->log,
        .stdout_fd = STDOUT_FILENO,
        .stderr_fd = STDERR_FILENO,
        .bytes = agent_metrics_log_bytes(agent->metrics),
    };
    enum failure_code code = log_thread_new(&settings, &agent->log_thread, failure);
    if (code == FAILURE_NONE) {
        log_sink_use_thread(agent->sink, agent->log_thread);
    }
    return code;
}

static enum failure_code open_event_log(struct agent *agent, struct failure *failure) {
    struct agent_event_log_settings settings = {
        .config = agent->config,
        .preparation = &agent->preparation,
        .machine = &agent->machine,
        .placement = &agent->placement,
        .sink = agent->sink,
    };
    return agent_event_log_new(agent->loop, &settings, &agent->event_log, failure);
}

static struct wall_time last_progress(void *context) {
    const struct agent *agent = context;
    return agent_watchdog_last_progress(agent->watchdog, event_loop_wall_time(agent->loop));
}

static void write_metrics(void *context, struct text *out) {
    const struct agent *agent = context;
    agent_metrics_write(agent->metrics, &agent->machine, agent->watchdog, out);
}

static void serve_health(struct agent *agent) {
    struct agent_health_settings settings = {
        .config = agent->config,
        .preparation = &agent->preparation,
        .machine = &agent->machine,
        .log = agent->log,
        .last_progress = last_progress,
        .write_metrics = write_metrics,
        .context = agent,
    };
    agent->health = agent_health_new(agent->loop, &settings);
}

static enum failure_code open_rendezvous(struct agent *agent, struct failure *failure) {
    struct agent_rendezvous_settings settings = {
        .config = agent->config,
        .preparation = &agent->preparation,
        .environment = agent->environment,
        .log = agent->log,
        .worker_store_operations = agent_metrics_worker_store_operations(agent->metrics),
        .record_store_operations = agent_metrics_record_store_operations(agent->metrics),
        .observer = agent_rendezvous_events(agent),
    };
    return agent_rendezvous_new(agent->loop, &settings, &agent->rendezvous, failure);
}

static enum failure_code prepare_workers(struct agent *agent, struct failure *failure) {
    struct agent_workers_settings settings = {
        .config = agent->config,
        .preparation = &agent->preparation,
        .environment = agent->environment,
        .log = agent->log,
        .descriptor_limit = agent->descriptor_limit,
        .guardian = agent->guardian,
        .log_thread = agent->log_thread,
        .observer = agent_workers_events(agent),
    };
    return agent_workers_new(agent->loop, &settings, &agent->workers, failure);
}

static enum failure_code prepare_watching(struct agent *agent, struct failure *failure) {
    struct agent_stuck_watch_settings stuck_settings = {
        .config = agent->config,
        .workers = agent->workers,
        .worker_count = agent->preparation.worker_count,
        .log = agent->log,
        .read_process = process_table_read,
        .stuck = agent_worker_stuck,
        .context = agent,
    };
    struct agent_evidence_settings evidence_settings = {agent->config, agent->workers, agent->log};
    agent->evidence = agent_evidence_new(agent->loop, &evidence_settings);
    struct agent_watchdog_settings settings = {
        .config = agent->config,
        .environment = agent->environment,
        .log = agent->log,
        .workers = agent->workers,
        .end_agent = agent_timer_expired,
        .look_begun = agent_look_begun,
        .look_over = agent_look_over,
        .context = agent,
        .observer = {agent_watchdog_event, agent},
        .evidence = agent->evidence,
    };
    agent->stuck_watch = agent_stuck_watch_new(agent->loop, &stuck_settings);
    return agent_watchdog_new(agent->loop, &settings, &agent->watchdog, failure);
}

static void warn_about_threads(const struct agent *agent) {
    if (agent->config->sets_omp_num_threads && agent->preparation.worker_count > 1) {
        log_warning(agent->log,
            "OMP_NUM_THREADS is not set: each of the %d workers gets 1, so that together they do "
            "not overload this machine; set it to what suits your program",
            agent->preparation.worker_count);
    }
}

/* Signals first, so that none is lost; the guardian before any thread; the rest in order of
 * dependence. */
static enum failure_code set_up(struct agent *agent, struct failure *failure) {
    signal_watch_ignore_broken_pipes();
    agent->descriptor_limit = descriptor_limit_raise();
    enum failure_code code = event_loop_new(&agent->loop, failure);
    if (code != FAILURE_NONE) {
        return code;
    }
    agent->deadline = event_timer_new(agent->loop, agent_deadline_passed, agent);
    code = signal_watch_new(agent->loop, agent->config->signals, agent->config->signal_count,
        agent_signal_received, agent, &agent->signals, failure);
    if (code == FAILURE_NONE) {
        code = agent_prepare(agent->config, agent->environment, &agent->preparation, failure);
    }
    if (code == FAILURE_NONE) {
        warn_about_threads(agent);
        agent->metrics = agent_metrics_new(agent->config, &agent->preparation);
        code = start_guardian(agent, failure);
    }
    if (code == FAILURE_NONE) {
        code = start_log_thread(agent, failure);
    }
    if (code == FAILURE_NONE) {
        code = open_event_log(agent, failure);
    }
    if (code == FAILURE_NONE) {
        serve_health(agent);
        code = open_rendezvous(agent, failure);
    }
    if (code == FAILURE_NONE) {
        code = prepare_workers(agent, failure);
    }
    if (code == FAILURE_NONE) {
        code = prepare_watching(agent, failure);
    }
    return code;
}

static void stop_loop(void *context) {
    event_loop_stop(((struct agent *)context)->loop);
}

static void tear_down(struct agent *agent) {
    agent_health_free(agent->health);
    agent_evidence_free(agent->evidence);
    agent_watchdog_free(agent->watchdog);
    agent_stuck_watch_free(agent->stuck_watch);
    agent_workers_free(agent->workers);
    agent_rendezvous_free(agent->rendezvous);
    if (agent->log_thread != NULL) {
        log_thread_drain(
            agent->log_thread, duration_from_seconds(CONSOLE_PATIENCE_SECONDS), stop_loop, agent);
        event_loop_run(agent->loop);
        log_sink_use_thread(agent->sink, NULL);
        log_thread_free(agent->log_thread);
    }
    agent_event_log_free(agent->event_log);
    agent_metrics_free(agent->metrics);
    guardian_free(agent->guardian);
    log_directory_remove_if_empty(&agent->preparation.logs);
    signal_watch_free(agent->signals);
    event_timer_free(agent->deadline);
    event_loop_free(agent->loop);
    agent_machine_clear(&agent->machine);
    agent_preparation_clear(&agent->preparation);
    free(agent->queue);
    free(agent->trouble);
    failure_account_clear(&agent->root_cause);
}

static int report_failures(struct agent *agent) {
    if (!worker_group_has_failure(&agent->machine.workers) && !agent->has_root_cause) {
        return EXIT_JOB_FAILED; /* only what was left behind keeps this node from going on */
    }
    struct agent_report_settings settings = {
        .config = agent->config,
        .sources = {&agent->preparation, agent->workers, &agent->placement},
        .log = agent->log,
        .root_cause = agent->has_root_cause ? &agent->root_cause : NULL,
        .parent_error_file = text_list_variable(agent->environment, "TORCHELASTIC_ERROR_FILE"),
    };
    struct text report = {0};
    int status = agent_report_failures(&settings, &agent->machine.workers, &report);
    log_sink_write_text(agent->sink, text_string(&report));
    text_clear(&report);
    return status;
}

static int report_outcome(struct agent *agent) {
    if (agent->outcome.has_abandoned_processes) {
        log_error(agent->log, "some processes did not end after SIGKILL (they hang in the kernel) "
                              "and were left behind");
    }
    switch (agent->outcome.kind) {
    case AGENT_OUTCOME_SUCCEEDED:
        return EXIT_SUCCESS;
    case AGENT_OUTCOME_FAILED:
        return report_failures(agent);
    case AGENT_OUTCOME_PEER_FAILED:
        log_error(agent->log, "stopped because another node failed: %s", agent->trouble);
        return agent->has_root_cause ? report_failures(agent) : EXIT_JOB_FAILED;
    case AGENT_OUTCOME_JOIN_FAILED:
        log_error(agent->log, "cannot join the job: %s", agent->trouble);
        return EXIT_JOB_FAILED;
    case AGENT_OUTCOME_SIGNALLED:
        log_error(agent->log, "stopped by %s", signal_name_from_number(agent->outcome.signal));
        return EXIT_JOB_FAILED;
    }
    return EXIT_JOB_FAILED;
}

static void record_outcome(struct agent *agent) {
    const struct worker_group *workers = &agent->machine.workers;
    const char *trouble = agent->trouble;
    char *signalled = NULL;
    if (agent->outcome.kind == AGENT_OUTCOME_SIGNALLED) {
        signalled = text_format("stopped by %s", signal_name_from_number(agent->outcome.signal));
        trouble = signalled;
    } else if (agent->outcome.kind == AGENT_OUTCOME_FAILED && workers->failure_count > 0) {
        trouble = workers->failures[worker_group_root_cause(workers)].start_message;
    }
    agent_event_log_end(agent->event_log, agent->workers, &agent->outcome, trouble);
    free(signalled);
}

int agent_run(const struct launch_config *config, const struct text_list *environment,
    struct log_sink *sink) {
    struct agent agent = {
        .config = config,
        .environment = environment,
        .sink = sink,
        .log = log_sink_log(sink),
    };
    struct failure failure = {0};
    int status = EXIT_JOB_FAILED;
    if (set_up(&agent, &failure) == FAILURE_NONE) {
        struct agent_settings settings = {
            .worker_count = agent.preparation.worker_count,
            .max_restarts = config->max_restarts,
            .shutdown_timeout = config->shutdown_timeout,
            .has_peers = config->maximum_nodes > 1,
            .looks_before_killing = config->evidence != LAUNCH_EVIDENCE_OFF,
            .may_lose_peers =
                config->maximum_nodes > 1 && config->rendezvous == LAUNCH_RENDEZVOUS_DYNAMIC,
        };
        agent_machine_init(&agent.machine, &settings);
        agent_take_event(&agent, (struct agent_event){.kind = AGENT_EVENT_START}, NULL);
        event_loop_run(agent.loop);
        record_outcome(&agent);
        status = report_outcome(&agent);
    } else {
        log_error(agent.log, "%s", failure.message);
    }
    tear_down(&agent);
    return status;
}
