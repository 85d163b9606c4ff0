/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/agent_worker_events.h"

#include <signal.h>
#include <stdlib.h>

#include "agent/agent_events.h"
#include "core/workers/signal_name.h"

/* After this time the start of workers is over, and short jobs are, too. */
#define CALM_MILLISECONDS 500

static void take(struct agent *agent, struct agent_event event) {
    agent_post(agent, &(struct node_event){.part = NODE_AGENT, .agent = event});
}

static void take_kind(struct agent *agent, enum agent_event_kind kind) {
    take(agent, (struct agent_event){.kind = kind});
}

static void workers_started(void *context) {
    struct agent *agent = context;
    signal_passing_note_start(agent->passing, true);
    event_timer_set(agent->calm,
        instant_after(event_loop_now(agent->loop), duration_from_milliseconds(CALM_MILLISECONDS)));
    take_kind(agent, AGENT_EVENT_WORKERS_STARTED);
}

static void worker_start_failed(void *context, int local_rank, const char *message) {
    struct agent *agent = context;
    log_error(agent->log, "local_rank %d could not be started: %s", local_rank, message);
    take(agent, (struct agent_event){.kind = AGENT_EVENT_START_FAILED,
                    .start_failed = {local_rank, message, event_loop_wall_time(agent->loop)}});
}

/* What ends while everything is being stopped is a consequence. */
static void log_first_failure(struct agent *agent, int local_rank, struct process_exit how) {
    bool is_success = !how.is_signal && how.value == 0;
    if (is_success || node_machine_agent(agent->node)->phase == AGENT_STOPPING) {
        return;
    }
    log_error(agent->log, "failed (exitcode: %d) local_rank: %d (pid: %lld) of binary: %s",
        how.is_signal ? -how.value : how.value, local_rank,
        (long long)agent_workers_pid(agent->workers, local_rank),
        agent->config->entry == LAUNCH_ENTRY_PROGRAM ? agent->config->script
                                                     : agent->preparation.python);
}

/* The node is to be replaced: it leaves the job as after a signal, before what it would do about a
 * failure. */
static void leave_if_asked(struct agent *agent, int local_rank, struct process_exit how) {
    const struct launch_exit_on *exit_on = &agent->config->exit_on;
    bool is_asked = how.is_signal ? exit_on->signals[how.value] : exit_on->codes[how.value];
    enum agent_phase phase = node_machine_agent(agent->node)->phase;
    if (!is_asked || agent->has_exit_on || (phase != AGENT_STARTING && phase != AGENT_RUNNING)) {
        return;
    }
    agent->has_exit_on = true;
    agent->exit_on = how;
    log_error(agent->log, "--exit-on: local_rank %d has ended with %s %d; this node leaves the job",
        local_rank, how.is_signal ? "signal" : "exit code", how.value);
    take(agent, (struct agent_event){.kind = AGENT_EVENT_SIGNAL_RECEIVED, .signal = SIGTERM});
}

static void take_end(
    struct agent *agent, enum agent_event_kind kind, int local_rank, struct process_exit how) {
    agent_guardian_listen(agent->guardian); /* it may have ended the worker */
    agent_watchdog_forget(agent->watchdog, agent_workers_pid(agent->workers, local_rank));
    log_first_failure(agent, local_rank, how);
    leave_if_asked(agent, local_rank, how);
    take(agent, (struct agent_event){.kind = kind,
                    .worker_exited = {local_rank, how, event_loop_wall_time(agent->loop)}});
}

static void worker_ending(void *context, int local_rank, struct process_exit how) {
    take_end(context, AGENT_EVENT_WORKER_ENDING, local_rank, how);
}

static void worker_exited(void *context, int local_rank, struct process_exit how) {
    take_end(context, AGENT_EVENT_WORKER_EXITED, local_rank, how);
}

static void look_at_stuck(struct agent *agent, int local_rank) {
    struct agent_evidence_subject subject = {
        agent_workers_pid(agent->workers, local_rank), local_rank};
    struct agent_evidence_order order = {&subject, 1,
        "it has been in uninterruptible sleep for too long", agent->config->evidence_timeout,
        agent_look_over, agent};
    agent_look_begun(agent);
    agent_evidence_gather(agent->evidence, &order);
}

void agent_worker_stuck(void *context, int local_rank, struct duration how_long) {
    struct agent *agent = context;
    agent_workers_read_error_file(
        agent->workers, local_rank); /* for the report; it may never end */
    look_at_stuck(agent, local_rank);
    log_error(agent->log,
        "worker %lld (local_rank %d) has been in uninterruptible sleep for %.1f s; the job fails, "
        "without a restart",
        (long long)agent_workers_pid(agent->workers, local_rank), local_rank,
        duration_seconds(how_long));
    take(agent, (struct agent_event){.kind = AGENT_EVENT_WORKER_STUCK,
                    .worker_stuck = {local_rank, how_long, event_loop_wall_time(agent->loop)}});
}

static void all_gone(void *context) {
    take_kind(context, AGENT_EVENT_ALL_GONE);
}

/* Before a restart and after a failure, whatever workers leave is ended, and nobody wonders. */
static void orphan_ended(void *context, const struct process_orphan *orphan) {
    const struct agent *agent = context;
    const struct agent_machine *machine = node_machine_agent(agent->node);
    char *whose = orphan->local_rank == -1 ? text_format("a worker")
                                           : text_format("local_rank %d", orphan->local_rank);
    if (machine->phase == AGENT_STOPPING && machine->stop_reason == AGENT_STOP_CLEAN_UP) {
        log_warning(agent->log,
            "process %lld, which %s had left behind, was ended, as the workers are done: %s",
            (long long)orphan->pid, whose, orphan->command);
    }
    free(whose);
}

struct agent_workers_observer agent_workers_events(struct agent *agent) {
    return (struct agent_workers_observer){workers_started, worker_start_failed, worker_ending,
        worker_exited, all_gone, agent, orphan_ended};
}
