/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/agent_events.h"

#include <signal.h>
#include <stdlib.h>

#include "agent/agent_findings.h"
#include "base/memory.h"
#include "core/agent_transcript.h"
#include "core/signal_name.h"

/* What is done with each effect. */

static void start_workers(struct agent *agent) {
    agent_evidence_drop(agent->evidence);
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

struct subjects {
    struct agent_evidence_subject *items;
    size_t count;
    size_t capacity;
};

static void add_subject(void *context, pid_t pid, int local_rank) {
    struct subjects *subjects = context;
    subjects->items = memory_reserve(
        subjects->items, &subjects->capacity, subjects->count + 1, sizeof *subjects->items);
    subjects->items[subjects->count++] = (struct agent_evidence_subject){pid, local_rank};
}

static void look_at_workers(struct agent *agent) {
    struct subjects subjects = {0};
    agent_workers_each_process(agent->workers, add_subject, &subjects);
    struct agent_evidence_order order = {subjects.items, subjects.count,
        "it did not end in time when asked to", agent->config->evidence_timeout, agent_look_over,
        agent};
    agent_evidence_gather(agent->evidence, &order);
    free(subjects.items);
}

static void stop_when_settled(void *context) {
    event_loop_stop(((struct agent *)context)->loop);
}

static void finish(struct agent *agent, const struct agent_outcome *outcome) {
    agent_evidence_drop(agent->evidence);
    agent->outcome = *outcome;
    if (outcome->kind == AGENT_OUTCOME_SIGNALLED) {
        agent_rendezvous_note_signal(agent->rendezvous);
    }
    agent_rendezvous_settle(agent->rendezvous, stop_when_settled, agent);
}

/* Tells the other nodes of a failure here, with the worker to blame for it so far. */
static void announce(struct agent *agent,
    void (*announce_on)(struct agent_rendezvous *, const struct failure_account *)) {
    struct worker_group *group = &agent->machine.workers;
    if (!worker_group_has_failure(group)) {
        announce_on(agent->rendezvous, NULL);
        return;
    }
    struct agent_findings_sources sources = {
        &agent->preparation, agent->workers, &agent->placement};
    struct agent_finding finding;
    agent_finding_collect(&sources, group, worker_group_root_cause(group), &finding);
    announce_on(agent->rendezvous, &finding.account);
    agent_finding_clear(&finding);
}

static void perform(struct agent *agent, const struct agent_effect *effect) {
    switch (effect->kind) {
    case AGENT_EFFECT_JOIN:
        agent_rendezvous_join(agent->rendezvous, effect->join.ticket, effect->join.attempt);
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
    case AGENT_EFFECT_LOOK_AT_WORKERS:
        look_at_workers(agent);
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
        announce(agent, agent_rendezvous_announce_restart);
        break;
    case AGENT_EFFECT_DOUBT_FAILURE:
        announce(agent, agent_rendezvous_doubt_failure);
        break;
    case AGENT_EFFECT_ANNOUNCE_FAILURE:
        announce(agent, agent_rendezvous_announce_failure);
        break;
    case AGENT_EFFECT_ANNOUNCE_LEAVE:
        agent_rendezvous_announce_leave(agent->rendezvous);
        break;
    case AGENT_EFFECT_ANNOUNCE_SUCCESS:
        agent_rendezvous_announce_success(agent->rendezvous);
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

/* What a worker's failure costs. */
static void log_budget(
    const struct agent *agent, const struct agent_event *event, enum agent_phase before) {
    const struct agent_machine *machine = &agent->machine;
    int allowed = agent->config->max_restarts;
    if (event->kind != AGENT_EVENT_WORKER_EXITED || before == machine->phase ||
        machine->phase != AGENT_STOPPING || machine->stop_reason == AGENT_STOP_CLEAN_UP) {
        return;
    }
    if (machine->stop_reason == AGENT_STOP_RESTART) {
        log_warning(agent->log, "restarting the workers: restart %d of %d (--max-restarts)",
            agent_machine_attempt(machine), allowed);
    } else if (allowed > 0) {
        log_error(agent->log, "no restart is left of %d (--max-restarts)", allowed);
    }
}

static void step(struct agent *agent, const struct agent_event *event) {
    struct agent_effects effects;
    if (is_debugging(agent)) {
        log_event(agent, event);
    }
    enum agent_phase before = agent->machine.phase;
    agent_machine_step(&agent->machine, event, &effects);
    log_budget(agent, event, before);
    agent_event_log_step(agent->event_log, agent->workers, before, event->now);
    agent_metrics_step(agent->metrics, before, &agent->machine, event);
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
    if (agent->machine.phase == AGENT_DONE) {
        log_warning(agent->log, "Received %s, not waiting for other nodes any longer",
            signal_name_from_number(signal));
        event_loop_stop(agent->loop);
        return;
    }
    log_warning(agent->log, "Received %s, shutting down workers", signal_name_from_number(signal));
    agent_take_event(
        agent, (struct agent_event){.kind = AGENT_EVENT_SIGNAL_RECEIVED, .signal = signal}, NULL);
}

void agent_timer_expired(void *context) {
    struct agent *agent = context;
    log_warning(agent->log, "--on-timer-expiry exit-agent: shutting down workers");
    agent_take_event(
        agent, (struct agent_event){.kind = AGENT_EVENT_SIGNAL_RECEIVED, .signal = SIGTERM}, NULL);
}

void agent_look_begun(void *context) {
    agent_take_event(context, (struct agent_event){.kind = AGENT_EVENT_LOOK_BEGUN}, NULL);
}

void agent_look_over(void *context) {
    agent_take_event(context, (struct agent_event){.kind = AGENT_EVENT_LOOK_OVER}, NULL);
}

static void joined(void *context, int64_t ticket, const struct node_placement *placement) {
    struct agent *agent = context;
    if (ticket == agent->machine.ticket) {
        agent->placement = *placement;
        failure_account_clear(&agent->root_cause);
        agent->has_root_cause = false;
    }
    agent_take_event(agent,
        (struct agent_event){.kind = AGENT_EVENT_JOINED,
            .joined = {ticket, placement->attempt, placement->group_world_size}},
        NULL);
}

static void note_trouble(struct agent *agent, const char *reason) {
    free(agent->trouble);
    agent->trouble = memory_duplicate_string(reason);
}

static void join_failed(void *context, int64_t ticket, const char *reason) {
    struct agent *agent = context;
    note_trouble(agent, reason);
    agent_take_event(
        agent, (struct agent_event){.kind = AGENT_EVENT_JOIN_FAILED, .ticket = ticket}, NULL);
}

static void job_over(void *context) {
    struct agent *agent = context;
    log_info(agent->log, "the job ended well without this node");
    agent_take_event(agent, (struct agent_event){.kind = AGENT_EVENT_JOB_OVER}, NULL);
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

static void failure_stands(void *context) {
    agent_take_event(context, (struct agent_event){.kind = AGENT_EVENT_FAILURE_STANDS}, NULL);
}

static void root_cause_learnt(void *context, const struct failure_account *account) {
    struct agent *agent = context;
    failure_account_copy(account, &agent->root_cause);
    agent->has_root_cause = true;
}

static void round_over(void *context, const char *reason) {
    struct agent *agent = context;
    log_warning(agent->log, "joining the job's next round: %s", reason);
    agent_take_event(agent, (struct agent_event){.kind = AGENT_EVENT_ROUND_OVER}, NULL);
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
    look_at_stuck(agent, local_rank);
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

void agent_watchdog_event(
    void *context, enum event_watchdog what, const struct event_timer_record *timer) {
    struct agent *agent = context;
    agent_event_log_watchdog(agent->event_log, what, timer);
    agent_metrics_watchdog(agent->metrics, what, timer, event_loop_wall_time(agent->loop));
}

static void all_gone(void *context) {
    agent_take_event(context, (struct agent_event){.kind = AGENT_EVENT_ALL_GONE}, NULL);
}

static void rendezvous_recorded(void *context, const struct event_rendezvous *record) {
    const struct agent *agent = context;
    agent_event_log_rendezvous(agent->event_log, record);
}

struct agent_rendezvous_observer agent_rendezvous_events(struct agent *agent) {
    return (struct agent_rendezvous_observer){
        .joined = joined,
        .join_failed = join_failed,
        .job_over = job_over,
        .barrier_ended = barrier_ended,
        .peer_restart = peer_restart,
        .peer_failed = peer_failed,
        .failure_stands = failure_stands,
        .root_cause_learnt = root_cause_learnt,
        .round_over = round_over,
        .recorded = agent_event_log_wants_rendezvous(agent->event_log) ? rendezvous_recorded : NULL,
        .context = agent,
    };
}

struct agent_workers_observer agent_workers_events(struct agent *agent) {
    return (struct agent_workers_observer){
        workers_started, worker_start_failed, worker_exited, all_gone, agent};
}
