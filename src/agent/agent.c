/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/agent.h"

#include <stdlib.h>
#include <unistd.h>

#include "agent/agent_preparation.h"
#include "agent/agent_rendezvous.h"
#include "agent/agent_report.h"
#include "agent/agent_stuck_watch.h"
#include "agent/agent_watchdog.h"
#include "agent/agent_workers.h"
#include "base/memory.h"
#include "core/agent_machine.h"
#include "core/agent_transcript.h"
#include "core/failure_report.h"
#include "core/signal_name.h"
#include "host/descriptor_limit.h"
#include "host/event_loop.h"
#include "host/guardian.h"
#include "host/log_thread.h"
#include "host/signal_watch.h"

#define EXIT_JOB_FAILED 1
/* How long a console that takes nothing may hold up the end of a job. */
#define CONSOLE_PATIENCE_SECONDS 30

/* One event waiting for its turn, with the text it borrows. */
struct queued_event {
    struct agent_event event;
    char *message;
};

struct agent {
    const struct launch_config *config;
    const struct text_list *environment;
    struct log_sink *sink;
    const struct log *log;
    struct agent_preparation preparation;
    struct event_loop *loop;
    long descriptor_limit; /* the soft limit before it was raised */
    struct event_timer *deadline;
    struct signal_watch *signals;
    struct guardian *guardian;
    struct log_thread *log_thread; /* NULL when no stream passes through it */
    struct agent_rendezvous *rendezvous;
    struct agent_workers *workers;
    struct agent_watchdog *watchdog;       /* NULL when no timers are served */
    struct agent_stuck_watch *stuck_watch; /* NULL when nobody asked for it */
    struct agent_machine machine;
    struct queued_event *queue;
    size_t queue_length;
    size_t queue_capacity;
    bool is_stepping;
    struct node_placement placement; /* of the attempt that was joined last */
    char *trouble;                   /* why joining failed, or what a peer reported */
    struct agent_outcome outcome;
};

/* What is done with each effect. */

static void start_workers(struct agent *agent) {
    agent_watchdog_begin(agent->watchdog);
    agent_stuck_watch_begin(agent->stuck_watch);
    agent_workers_start(agent->workers, &agent->placement);
}

static void signal_workers(struct agent *agent, int signal) {
    const struct agent_machine *machine = &agent->machine;
    agent_watchdog_end(agent->watchdog);
    agent_stuck_watch_end(agent->stuck_watch);
    for (size_t rank = 0; rank < machine->workers.count; rank++) {
        if (machine->workers.states[rank] == WORKER_RUNNING &&
            agent_workers_pid(agent->workers, (int)rank) != 0) {
            log_warning(agent->log, "Sending process %lld closing signal %s",
                (long long)agent_workers_pid(agent->workers, (int)rank),
                signal_name_from_number(signal));
        }
    }
    agent_workers_signal(agent->workers, signal);
}

static void stop_loop(void *context) {
    event_loop_stop(((struct agent *)context)->loop);
}

static void finish(struct agent *agent, const struct agent_outcome *outcome) {
    agent->outcome = *outcome;
    agent_rendezvous_settle(agent->rendezvous, stop_loop, agent);
}

static void perform(struct agent *agent, const struct agent_effect *effect) {
    switch (effect->kind) {
    case AGENT_EFFECT_JOIN:
        agent_rendezvous_join(agent->rendezvous, effect->attempt);
        break;
    case AGENT_EFFECT_START_WORKERS:
        start_workers(agent);
        break;
    case AGENT_EFFECT_SIGNAL_WORKERS:
        signal_workers(agent, effect->signal);
        break;
    case AGENT_EFFECT_KILL_WORKERS:
        signal_workers(agent, SIGNAL_NUMBER_KILL);
        break;
    case AGENT_EFFECT_ARM_TIMER:
        event_timer_set(agent->deadline, effect->deadline);
        break;
    case AGENT_EFFECT_DISARM_TIMER:
        event_timer_stop(agent->deadline);
        break;
    case AGENT_EFFECT_ENTER_BARRIER:
        agent_rendezvous_enter_barrier(agent->rendezvous);
        break;
    case AGENT_EFFECT_ANNOUNCE_RESTART:
        agent_rendezvous_announce_restart(agent->rendezvous);
        break;
    case AGENT_EFFECT_ANNOUNCE_FAILURE:
        agent_rendezvous_announce_failure(agent->rendezvous);
        break;
    case AGENT_EFFECT_FINISH:
        finish(agent, &effect->outcome);
        break;
    case AGENT_EFFECT_COUNT:
        break;
    }
}

/* Events are taken one after the other: what an effect causes at once waits until its step's other
 * effects are done. */

static bool is_debugging(const struct agent *agent) {
    return agent->log->threshold <= LOG_LEVEL_DEBUG;
}

static void log_event(const struct agent *agent, const struct agent_event *event) {
    struct text line = {0};
    agent_event_describe(event, &line);
    log_debug(agent->log, "%s <- %s", agent_phase_name(agent->machine.phase), text_string(&line));
    text_clear(&line);
}

static void log_effect(const struct agent *agent, const struct agent_effect *effect) {
    struct text line = {0};
    agent_effect_describe(effect, &line);
    log_debug(agent->log, "%s -> %s", agent_phase_name(agent->machine.phase), text_string(&line));
    text_clear(&line);
}

static void step(struct agent *agent, const struct agent_event *event) {
    struct agent_effects effects;
    if (is_debugging(agent)) {
        log_event(agent, event);
    }
    agent_machine_step(&agent->machine, event, &effects);
    for (size_t i = 0; i < effects.count; i++) {
        if (is_debugging(agent)) {
            log_effect(agent, &effects.items[i]);
        }
        perform(agent, &effects.items[i]);
    }
}

static void take_event(struct agent *agent, struct agent_event event, const char *message) {
    event.now = event_loop_now(agent->loop);
    agent->queue = memory_reserve(
        agent->queue, &agent->queue_capacity, agent->queue_length + 1, sizeof *agent->queue);
    agent->queue[agent->queue_length++] =
        (struct queued_event){event, memory_duplicate_string(message)};
    if (agent->is_stepping) {
        return;
    }
    agent->is_stepping = true;
    for (size_t i = 0; i < agent->queue_length; i++) {
        struct queued_event next = agent->queue[i];
        if (next.event.kind == AGENT_EVENT_START_FAILED) {
            next.event.start_failed.message = next.message;
        }
        step(agent, &next.event);
        free(next.message);
    }
    agent->queue_length = 0;
    agent->is_stepping = false;
}

/* What the shells below report, as events. */

static void deadline_passed(void *context) {
    take_event(context, (struct agent_event){.kind = AGENT_EVENT_TIMER_FIRED}, NULL);
}

static void signal_received(void *context, int signal) {
    struct agent *agent = context;
    log_warning(agent->log, "Received %s, shutting down workers", signal_name_from_number(signal));
    take_event(
        agent, (struct agent_event){.kind = AGENT_EVENT_SIGNAL_RECEIVED, .signal = signal}, NULL);
}

static void joined(void *context, const struct node_placement *placement) {
    struct agent *agent = context;
    agent->placement = *placement;
    take_event(agent,
        (struct agent_event){.kind = AGENT_EVENT_JOINED,
            .joined = {placement->attempt, placement->group_world_size}},
        NULL);
}

static void note_trouble(struct agent *agent, const char *reason) {
    free(agent->trouble);
    agent->trouble = memory_duplicate_string(reason);
}

static void join_failed(void *context, int attempt, const char *reason) {
    struct agent *agent = context;
    note_trouble(agent, reason);
    take_event(
        agent, (struct agent_event){.kind = AGENT_EVENT_JOIN_FAILED, .attempt = attempt}, NULL);
}

static void barrier_ended(void *context, bool has_passed) {
    enum agent_event_kind kind =
        has_passed ? AGENT_EVENT_BARRIER_PASSED : AGENT_EVENT_BARRIER_FAILED;
    take_event(context, (struct agent_event){.kind = kind}, NULL);
}

static void peer_restart(void *context, int attempt) {
    struct agent *agent = context;
    log_warning(agent->log, "another node restarts its workers: joining attempt %d", attempt);
    take_event(
        agent, (struct agent_event){.kind = AGENT_EVENT_PEER_RESTART, .attempt = attempt}, NULL);
}

static void peer_failed(void *context, const char *reason) {
    struct agent *agent = context;
    note_trouble(agent, reason);
    take_event(agent, (struct agent_event){.kind = AGENT_EVENT_PEER_FAILED}, NULL);
}

static void workers_started(void *context) {
    take_event(context, (struct agent_event){.kind = AGENT_EVENT_WORKERS_STARTED}, NULL);
}

static void worker_start_failed(void *context, int local_rank, const char *message) {
    struct agent *agent = context;
    log_error(agent->log, "local_rank %d could not be started: %s", local_rank, message);
    take_event(agent,
        (struct agent_event){.kind = AGENT_EVENT_START_FAILED,
            .start_failed = {local_rank, NULL, event_loop_wall_time(agent->loop)}},
        message);
}

/* What ends while everything is being stopped is a consequence. */
static void log_first_failure(struct agent *agent, int local_rank, struct process_exit how) {
    bool is_success = !how.is_signal && how.value == 0;
    if (is_success || agent->machine.phase == AGENT_STOPPING) {
        return;
    }
    log_error(agent->log, "failed (exitcode: %d) local_rank: %d (pid: %lld) of binary: %s",
        how.is_signal ? -how.value : how.value, local_rank,
        (long long)agent_workers_pid(agent->workers, local_rank),
        agent->config->entry == LAUNCH_ENTRY_PROGRAM ? agent->config->script
                                                     : agent->preparation.python);
}

static void worker_exited(void *context, int local_rank, struct process_exit how) {
    struct agent *agent = context;
    agent_watchdog_forget(agent->watchdog, agent_workers_pid(agent->workers, local_rank));
    log_first_failure(agent, local_rank, how);
    take_event(agent,
        (struct agent_event){.kind = AGENT_EVENT_WORKER_EXITED,
            .worker_exited = {local_rank, how, event_loop_wall_time(agent->loop)}},
        NULL);
}

static void worker_stuck(void *context, int local_rank, struct duration how_long) {
    struct agent *agent = context;
    log_error(agent->log,
        "worker %lld (local_rank %d) has been in uninterruptible sleep for %.1f s; the job fails, "
        "without a restart",
        (long long)agent_workers_pid(agent->workers, local_rank), local_rank,
        duration_seconds(how_long));
    take_event(agent,
        (struct agent_event){.kind = AGENT_EVENT_WORKER_STUCK,
            .worker_stuck = {local_rank, how_long, event_loop_wall_time(agent->loop)}},
        NULL);
}

static void all_gone(void *context) {
    take_event(context, (struct agent_event){.kind = AGENT_EVENT_ALL_GONE}, NULL);
}

/* Setting up and taking down. */

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

static enum failure_code start_log_thread(struct agent *agent, struct failure *failure) {
    if (!agent_workers_need_log_thread(agent->config, &agent->preparation)) {
        return FAILURE_NONE;
    }
    struct log_thread_settings settings = {
        .loop = agent->loop,
        .log = agent->log,
        .stdout_fd = STDOUT_FILENO,
        .stderr_fd = STDERR_FILENO,
    };
    enum failure_code code = log_thread_new(&settings, &agent->log_thread, failure);
    if (code == FAILURE_NONE) {
        log_sink_use_thread(agent->sink, agent->log_thread);
    }
    return code;
}

static enum failure_code open_rendezvous(struct agent *agent, struct failure *failure) {
    struct agent_rendezvous_settings settings = {
        .config = agent->config,
        .preparation = &agent->preparation,
        .environment = agent->environment,
        .log = agent->log,
        .observer = {joined, join_failed, barrier_ended, peer_restart, peer_failed, agent},
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
        .observer = {workers_started, worker_start_failed, worker_exited, all_gone, agent},
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
        .stuck = worker_stuck,
        .context = agent,
    };
    struct agent_watchdog_settings settings = {
        .config = agent->config,
        .environment = agent->environment,
        .log = agent->log,
        .workers = agent->workers,
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
    agent->deadline = event_timer_new(agent->loop, deadline_passed, agent);
    code = signal_watch_new(agent->loop, agent->config->signals, agent->config->signal_count,
        signal_received, agent, &agent->signals, failure);
    if (code == FAILURE_NONE) {
        code = agent_prepare(agent->config, agent->environment, &agent->preparation, failure);
    }
    if (code == FAILURE_NONE) {
        warn_about_threads(agent);
        code = start_guardian(agent, failure);
    }
    if (code == FAILURE_NONE) {
        code = start_log_thread(agent, failure);
    }
    if (code == FAILURE_NONE) {
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

static void tear_down(struct agent *agent) {
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
    guardian_free(agent->guardian);
    log_directory_remove_if_empty(&agent->preparation.logs);
    signal_watch_free(agent->signals);
    event_timer_free(agent->deadline);
    event_loop_free(agent->loop);
    agent_machine_clear(&agent->machine);
    agent_preparation_clear(&agent->preparation);
    free(agent->queue);
    free(agent->trouble);
}

static int report_failures(struct agent *agent) {
    struct agent_report_settings settings = {
        .config = agent->config,
        .preparation = &agent->preparation,
        .workers = agent->workers,
        .log = agent->log,
        .base_rank = agent->placement.ranks.base_rank,
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
        return EXIT_JOB_FAILED;
    case AGENT_OUTCOME_JOIN_FAILED:
        log_error(agent->log, "cannot join the job: %s", agent->trouble);
        return EXIT_JOB_FAILED;
    case AGENT_OUTCOME_SIGNALLED:
        log_error(agent->log, "stopped by %s", signal_name_from_number(agent->outcome.signal));
        return EXIT_JOB_FAILED;
    }
    return EXIT_JOB_FAILED;
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
            agent.preparation.worker_count, config->max_restarts, config->shutdown_timeout};
        agent_machine_init(&agent.machine, &settings);
        take_event(&agent, (struct agent_event){.kind = AGENT_EVENT_START}, NULL);
        event_loop_run(agent.loop);
        status = report_outcome(&agent);
    } else {
        log_error(agent.log, "%s", failure.message);
    }
    tear_down(&agent);
    return status;
}
