/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/agent_events.h"

#include <stdlib.h>

#include "base/memory.h"
#include "core/agent_transcript.h"
#include "core/signal_name.h"

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

static void stop_when_settled(void *context) {
    event_loop_stop(((struct agent *)context)->loop);
}

static void finish(struct agent *agent, const struct agent_outcome *outcome) {
    agent->outcome = *outcome;
    agent_rendezvous_settle(agent->rendezvous, stop_when_settled, agent);
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

void agent_take_event(struct agent *agent, struct agent_event event, const char *message) {
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

void agent_deadline_passed(void *context) {
    agent_take_event(context, (struct agent_event){.kind = AGENT_EVENT_TIMER_FIRED}, NULL);
}

void agent_signal_received(void *context, int signal) {
    struct agent *agent = context;
    log_warning(agent->log, "Received %s, shutting down workers", signal_name_from_number(signal));
    agent_take_event(
        agent, (struct agent_event){.kind = AGENT_EVENT_SIGNAL_RECEIVED, .signal = signal}, NULL);
}

static void joined(void *context, const struct node_placement *placement) {
    struct agent *agent = context;
    agent->placement = *placement;
    agent_take_event(agent,
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
    agent_take_event(
        agent, (struct agent_event){.kind = AGENT_EVENT_JOIN_FAILED, .attempt = attempt}, NULL);
}

static void barrier_ended(void *context, bool has_passed) {
    enum agent_event_kind kind =
        has_passed ? AGENT_EVENT_BARRIER_PASSED : AGENT_EVENT_BARRIER_FAILED;
    agent_take_event(context, (struct agent_event){.kind = kind}, NULL);
}

static void peer_restart(void *context, int attempt) {
    struct agent *agent = context;
    log_warning(agent->log, "another node restarts its workers: joining attempt %d", attempt);
    agent_take_event(
        agent, (struct agent_event){.kind = AGENT_EVENT_PEER_RESTART, .attempt = attempt}, NULL);
}

static void peer_failed(void *context, const char *reason) {
    struct agent *agent = context;
    note_trouble(agent, reason);
    agent_take_event(agent, (struct agent_event){.kind = AGENT_EVENT_PEER_FAILED}, NULL);
}

static void workers_started(void *context) {
    agent_take_event(context, (struct agent_event){.kind = AGENT_EVENT_WORKERS_STARTED}, NULL);
}

static void worker_start_failed(void *context, int local_rank, const char *message) {
    struct agent *agent = context;
    log_error(agent->log, "local_rank %d could not be started: %s", local_rank, message);
    agent_take_event(agent,
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
    agent_take_event(agent,
        (struct agent_event){.kind = AGENT_EVENT_WORKER_EXITED,
            .worker_exited = {local_rank, how, event_loop_wall_time(agent->loop)}},
        NULL);
}

void agent_worker_stuck(void *context, int local_rank, struct duration how_long) {
    struct agent *agent = context;
    log_error(agent->log,
        "worker %lld (local_rank %d) has been in uninterruptible sleep for %.1f s; the job fails, "
        "without a restart",
        (long long)agent_workers_pid(agent->workers, local_rank), local_rank,
        duration_seconds(how_long));
    agent_take_event(agent,
        (struct agent_event){.kind = AGENT_EVENT_WORKER_STUCK,
            .worker_stuck = {local_rank, how_long, event_loop_wall_time(agent->loop)}},
        NULL);
}

static void all_gone(void *context) {
    agent_take_event(context, (struct agent_event){.kind = AGENT_EVENT_ALL_GONE}, NULL);
}

struct agent_rendezvous_observer agent_rendezvous_events(struct agent *agent) {
    return (struct agent_rendezvous_observer){
        joined, join_failed, barrier_ended, peer_restart, peer_failed, agent};
}

struct agent_workers_observer agent_workers_events(struct agent *agent) {
    return (struct agent_workers_observer){
        workers_started, worker_start_failed, worker_exited, all_gone, agent};
}
