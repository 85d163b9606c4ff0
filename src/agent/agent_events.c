/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/agent_events.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/failure/agent_report.h"
#include "base/memory.h"
#include "core/agent/agent_machine.h"
#include "core/standby/standby_plan.h"
#include "core/telling/round_reason.h"
#include "core/workers/signal_name.h"

/* How long the agent lives on what is left of the first reserve. */
#define PATIENCE_SECONDS 3
#define LOOK_MILLISECONDS 100
#define TELL_MILLISECONDS 1000

struct agent_memory {
    struct event_loop *loop;
    struct event_wake *wake;
    struct event_timer *timer;
    pid_t owner;
    bool is_short; /* since: */
    struct instant since;
    void (*exhausted)(void *context);
    void *context;
};

/* Any thread. A worker that is forked without exec is no agent. */
static void given_up(void *context) {
    const struct agent_memory *memory = context;
    if (getpid() == memory->owner) {
        event_wake_send(memory->wake);
    }
}

static bool is_over(const struct agent_memory *memory, struct instant now) {
    struct instant end = instant_after(memory->since, duration_from_seconds(PATIENCE_SECONDS));
    return !spare_memory_has_last_reserve() || !instant_is_before(now, end);
}

/* Where the agent ends, what it calls and what knows no reserve has the second one, too. */
static void look(void *context) {
    struct agent_memory *memory = context;
    struct instant now = event_loop_now(memory->loop);
    bool was_short = memory->is_short;
    memory->is_short = !spare_memory_keep_reserve();
    if (!memory->is_short) {
        (void)spare_memory_keep_last_reserve();
        return;
    }
    memory->since = was_short ? memory->since : now;
    bool is_exhausted = is_over(memory, now);
    event_timer_set(memory->timer,
        instant_after(
            now, duration_from_milliseconds(is_exhausted ? TELL_MILLISECONDS : LOOK_MILLISECONDS)));
    if (is_exhausted) {
        (void)spare_memory_give_up_reserve();
        memory->exhausted(memory->context);
    }
}

enum failure_code agent_memory_new(struct event_loop *loop, void (*exhausted)(void *context),
    void *context, struct agent_memory **out_memory, struct failure *failure) {
    if (!spare_memory_keep_reserve() || !spare_memory_keep_last_reserve()) {
        return failure_set_system(failure, ENOMEM, "cannot begin");
    }
    struct agent_memory *memory = memory_allocate(sizeof *memory);
    *memory = (struct agent_memory){
        .loop = loop, .owner = getpid(), .exhausted = exhausted, .context = context};
    enum failure_code code = event_wake_new(loop, look, memory, &memory->wake, failure);
    if (code != FAILURE_NONE) {
        free(memory);
        return code;
    }
    memory->timer = event_timer_new(loop, look, memory);
    spare_memory_watch(given_up, memory);
    *out_memory = memory;
    return FAILURE_NONE;
}

void agent_memory_free(struct agent_memory *memory) {
    if (memory == NULL) {
        return;
    }
    spare_memory_watch(NULL, NULL);
    event_timer_free(memory->timer);
    event_wake_free(memory->wake);
    free(memory);
}

/* Events. */

/* How long the other nodes and the report wait for what a failed worker wrote into its error file.
 * The workers of this node never wait for it. */
#define REPORT_PATIENCE_MILLISECONDS 250
/* A restart waits for less: its account is read only if the job then fails all the same. */
#define RESTART_PATIENCE_MILLISECONDS 20

static void take(struct agent *agent, struct agent_event event) {
    agent_post(agent, &(struct node_event){.part = NODE_AGENT, .agent = event});
}

static void take_kind(struct agent *agent, enum agent_event_kind kind) {
    take(agent, (struct agent_event){.kind = kind});
}

static void post_membership(struct agent *agent, struct membership_event event) {
    agent_post(agent, &(struct node_event){.part = NODE_MEMBERSHIP, .membership = event});
}

/* The program. */

static enum run_group_state group_state(const struct agent_machine *machine) {
    if (machine->phase == AGENT_STARTING || machine->phase == AGENT_RUNNING) {
        return machine->phase == AGENT_RUNNING ? RUN_GROUP_STATE_HEALTHY : RUN_GROUP_STATE_INIT;
    }
    bool has_ended = machine->phase == AGENT_LEAVING || machine->phase == AGENT_DONE;
    if (has_ended && machine->stop_reason == AGENT_STOP_CLEAN_UP) {
        return RUN_GROUP_STATE_SUCCEEDED;
    }
    return has_ended && (machine->stop_reason == AGENT_STOP_FAILURE ||
                            machine->stop_reason == AGENT_STOP_DOUBTED_FAILURE)
               ? RUN_GROUP_STATE_FAILED
               : RUN_GROUP_STATE_STOPPED;
}

/* The caller clears it. */
static struct run_group describe_group(const struct agent *agent) {
    const struct agent_machine *machine = node_machine_agent(agent->node);
    const struct node_placement *placement = &node_machine_knowledge(agent->node)->placement;
    struct run_group group = {
        .state = group_state(machine),
        .group_rank = placement->group_rank,
        .group_world_size = placement->group_world_size,
        .base_rank = placement->ranks.base_rank,
        .world_size = placement->ranks.world_size,
        .role_base_rank = placement->ranks.role_base_rank,
        .role_world_size = placement->ranks.role_world_size,
        .restarts = agent_machine_attempt(machine),
        .run_id = memory_duplicate_string(agent->preparation.run_id),
        .role = memory_duplicate_string(agent->config->role),
        .master_host = memory_duplicate_string(
            placement->master_address != NULL ? placement->master_address : ""),
        .master_port = placement->master_port,
        .worker_count = (size_t)agent->preparation.worker_count,
    };
    group.pids = memory_allocate(group.worker_count * sizeof *group.pids);
    for (size_t i = 0; i < group.worker_count && machine->phase != AGENT_STARTING; i++) {
        group.pids[i] = agent_workers_pid(agent->workers, (int)i);
    }
    return group;
}

/* Of the same phase it has heard already. */
static void tell_group(struct agent *agent, enum agent_phase before) {
    enum agent_phase now = node_machine_agent(agent->node)->phase;
    if (agent->audience != NULL && now != before && now >= AGENT_STARTING &&
        (before >= AGENT_STARTING || now == AGENT_STARTING)) {
        struct run_group group = describe_group(agent);
        agent_audience_group(agent->audience, &group);
        run_group_clear(&group);
    }
}

/* This node ends, and other nodes may go on. */
static void take_refusal(struct agent *agent, const char *moment, const struct text *reason) {
    agent->refusal = text_format("%s: %s", moment, text_string(reason));
    log_error(agent->log, "%s; this node leaves the job", agent->refusal);
    take_kind(agent, AGENT_EVENT_CANNOT_GO_ON);
}

static void ask_program(struct agent *agent, const char *moment,
    bool (*hook)(void *context, const struct run_group *group, struct text *out_reason)) {
    struct text reason = {0};
    if (hook == NULL || agent->refusal != NULL) {
        return;
    }
    struct run_group group = describe_group(agent);
    if (!hook(agent->hooks.context, &group, &reason)) {
        take_refusal(agent, moment, &reason);
    }
    run_group_clear(&group);
    text_clear(&reason);
}

static void ask_for_logs(struct agent *agent) {
    struct text reason = {0};
    if (agent->hooks.reify_logs == NULL || agent->refusal != NULL) {
        return;
    }
    struct run_group group = describe_group(agent);
    if (!agent->hooks.reify_logs(
            agent->hooks.context, &group, agent_workers_own_files(agent->workers), &reason)) {
        take_refusal(agent, "reify_logs", &reason);
    }
    run_group_clear(&group);
    text_clear(&reason);
}

static void ask_about_restart(struct agent *agent) {
    if (!agent->has_asked_restart) {
        agent->has_asked_restart = true;
        ask_program(agent, "restart_workers", agent->hooks.restart_workers);
    }
}

static void tell_program_of_stop(struct agent *agent, int signal) {
    if (agent->hooks.stop_workers == NULL || agent->has_told_stop ||
        node_machine_agent(agent->node)->stop_reason == AGENT_STOP_CLEAN_UP) {
        return;
    }
    agent->has_told_stop = true;
    struct run_group group = describe_group(agent);
    agent->hooks.stop_workers(agent->hooks.context, &group, signal);
    run_group_clear(&group);
}

static void monitor_later(struct agent *agent) {
    event_timer_set(agent->monitor,
        instant_after(event_loop_now(agent->loop), agent->config->monitor_interval));
}

/* As with a timer that has expired, its end is a failure like any other. */
static void end_worker(struct agent *agent, int local_rank, const char *origin, const char *whose,
    const char *reason) {
    pid_t pid = agent_workers_pid(agent->workers, local_rank);
    char *by_whom = text_format("%s%s", whose, reason);
    if (agent_workers_find(agent->workers, pid) == local_rank) {
        log_error(agent->log, "%s: ending worker %lld (local_rank %d): %s", origin, (long long)pid,
            local_rank, reason);
        agent_workers_note_signal(agent->workers, local_rank, SIGKILL, by_whom);
        (void)kill(pid, SIGKILL);
    }
    free(by_whom);
}

static void monitor_workers(void *context) {
    struct agent *agent = context;
    struct text reason = {0};
    if (node_machine_agent(agent->node)->phase != AGENT_RUNNING) {
        return;
    }
    struct run_group group = describe_group(agent);
    int local_rank = agent->hooks.monitor_workers(agent->hooks.context, &group, &reason);
    if (local_rank >= 0 && (size_t)local_rank < group.worker_count) {
        end_worker(agent, local_rank, "monitor_workers",
            "by the program that has started the agent: ", text_string(&reason));
    }
    monitor_later(agent);
    run_group_clear(&group);
    text_clear(&reason);
}

static void begin_monitoring(struct agent *agent) {
    if (agent->hooks.monitor_workers != NULL) {
        agent->monitor = agent->monitor != NULL
                             ? agent->monitor
                             : event_timer_new(agent->loop, monitor_workers, agent);
        monitor_later(agent);
    }
}

/* Nothing is reported yet. */
static void shut_program_down(const struct agent *agent, const struct agent_outcome *outcome) {
    if (agent->hooks.shutdown != NULL) {
        struct run_group group = describe_group(agent);
        agent->hooks.shutdown(agent->hooks.context, &group,
            outcome->kind == AGENT_OUTCOME_SIGNALLED ? outcome->signal : 0);
        run_group_clear(&group);
    }
}

/* What is done with each effect. */

static void start_workers(struct agent *agent) {
    agent->has_told_stop = false;
    agent->has_asked_restart = false;
    /* A refusal is taken before any worker is started. */
    ask_program(agent, "start_workers", agent->hooks.start_workers);
    ask_for_logs(agent);
    agent_evidence_drop(agent->evidence);
    agent_scratch_renew(agent->scratch);
    agent_watchdog_begin(agent->watchdog);
    agent_stuck_watch_begin(agent->stuck_watch);
    signal_passing_note_start(agent->passing, false);
    agent_guardian_speak(agent->guardian); /* other nodes may have come since the last sign */
    agent_workers_start(agent->workers, &node_machine_knowledge(agent->node)->placement);
    agent_announcement_tell(agent->announcement, &node_machine_knowledge(agent->node)->placement);
}

static void signal_workers(struct agent *agent, int signal) {
    const struct agent_machine *machine = node_machine_agent(agent->node);
    tell_program_of_stop(agent, signal);
    agent_watchdog_end(agent->watchdog);
    agent_stuck_watch_end(agent->stuck_watch);
    agent_hang_end(agent->hang);
    signal_passing_send(agent->passing, agent->workers, &machine->workers, agent->log, signal);
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
        agent, NULL};
    agent_evidence_gather(agent->evidence, &order);
    free(subjects.items);
}

/* Answers that wait. */

bool agent_ends_with_first_cause(const struct agent *agent) {
    return agent->has_first_cause &&
           fruitless_attempts_are_enough(&node_machine_agent(agent->node)->fruitless);
}

static void post_with_account(struct agent *agent, enum membership_event_kind kind) {
    struct worker_group *group = node_machine_workers(agent->node);
    struct agent_findings_sources sources = {
        &agent->preparation, agent->workers, &node_machine_knowledge(agent->node)->placement};
    struct agent_finding finding;
    agent_finding_collect(&sources, group, worker_group_root_cause(group), &finding);
    post_membership(agent, (struct membership_event){.kind = kind,
                               .account = agent_ends_with_first_cause(agent) ? &agent->first_cause
                                                                             : &finding.account});
    agent_finding_clear(&finding);
}

/* Before the workers of the next attempt. What another node has said of it comes first. */
static void keep_cause(struct agent *agent) {
    struct worker_group *group = node_machine_workers(agent->node);
    struct agent_findings_sources sources = {
        &agent->preparation, agent->workers, &node_machine_knowledge(agent->node)->placement};
    struct agent_finding finding;
    if (agent->has_last_cause || !worker_group_has_failure(group) ||
        group->failures[worker_group_root_cause(group)].is_from_our_signal) {
        return;
    }
    agent_finding_collect(&sources, group, worker_group_root_cause(group), &finding);
    failure_account_copy(&finding.account, &agent->last_cause);
    agent->has_last_cause = true;
    agent_finding_clear(&finding);
}

static void learn_cause(struct agent *agent, const struct failure_account *account) {
    failure_account_copy(account, &agent->last_cause);
    agent->has_last_cause = true;
}

/* Once: the phase changes with the failure. */
static void explain_end(struct agent *agent) {
    const struct agent_machine *machine = node_machine_agent(agent->node);
    struct text reason = {0};
    if (machine->phase != AGENT_STOPPING || !fruitless_attempts_are_enough(&machine->fruitless)) {
        return;
    }
    text_append_format(&reason, "%d attempts in a row have got no further (--no-progress-restarts)",
        machine->fruitless.count);
    if (agent->has_first_cause) {
        text_append(&reason, "; the first of them: ");
        failure_account_describe(&agent->first_cause, &reason);
    }
    log_error(agent->log, "the job ends: %s", text_string(&reason));
    agent_chronicle_note_end(agent->chronicle, text_string(&reason));
    text_clear(&reason);
}

/* The next attempt begins. */
static void turn_cause(struct agent *agent) {
    int count = node_machine_agent(agent->node)->fruitless.count;
    if (count <= 1) {
        failure_account_clear(&agent->first_cause);
        agent->has_first_cause = count == 1 && agent->has_last_cause;
    }
    if (count == 1 && agent->has_last_cause) {
        failure_account_copy(&agent->last_cause, &agent->first_cause);
    }
    failure_account_clear(&agent->last_cause);
    agent->has_last_cause = false;
}

static void run_queue(struct agent *agent);

static void log_unread_errors(const struct agent *agent) {
    const struct worker_group *group = node_machine_workers(agent->node);
    for (size_t i = 0; i < group->failure_count; i++) {
        const struct worker_error *error =
            agent_workers_error(agent->workers, group->failures[i].local_rank);
        if (error != NULL && error->code == FAILURE_TIMEOUT) {
            log_warning(agent->log, "going on without an error file: %s", error->failure.message);
        }
    }
}

static void give_answers(void *context) {
    struct agent *agent = context;
    log_unread_errors(agent);
    bool is_queueing = agent->is_queueing;
    agent->is_queueing = true;
    for (size_t i = 0; i < agent->owed_count; i++) {
        if (membership_event_has_account(agent->owed[i])) {
            post_with_account(agent, agent->owed[i]);
        } else {
            post_membership(agent, (struct membership_event){.kind = agent->owed[i]});
        }
    }
    agent->owed_count = 0;
    agent->is_queueing = is_queueing;
    if (!is_queueing) {
        run_queue(agent);
    }
}

static void answer_when_read(struct agent *agent, enum membership_event_kind kind, int local_rank,
    int patience_milliseconds) {
    agent->owed[agent->owed_count++] = kind;
    agent_workers_await_errors(agent->workers, local_rank,
        duration_from_milliseconds(patience_milliseconds), give_answers, agent);
}

/* The report needs what all failed workers wrote. */
static void end_when_read(void *context) {
    struct agent *agent = context;
    if (!agent->has_run) { /* or it has ended without waiting */
        answer_when_read(
            agent, MEMBERSHIP_EVENT_END_ASKED, WORKER_ERRORS_ALL, REPORT_PATIENCE_MILLISECONDS);
    }
}

/* The others should know why a node is missing that is to stay out of the job. */
static void finish(struct agent *agent, const struct agent_outcome *outcome) {
    agent_evidence_drop(agent->evidence);
    shut_program_down(agent, outcome);
    agent->outcome = *outcome;
    if (agent->unfit == NULL || !agent_chronicle_hurry(agent->chronicle, end_when_read, agent)) {
        end_when_read(agent);
    }
}

/* Tells the other nodes of a failure here, with the worker to blame for it so far. Fixed nodes do
 * not tell each other whom to blame. */
static void announce(
    struct agent *agent, enum membership_event_kind kind, int patience_milliseconds) {
    const struct worker_group *group = node_machine_workers(agent->node);
    bool is_account_wanted = agent->node_settings.node.membership.kind == MEMBERSHIP_CHANGING;
    if (is_account_wanted && worker_group_has_failure(group)) {
        int local_rank = group->failures[worker_group_root_cause(group)].local_rank;
        answer_when_read(agent, kind, local_rank, patience_milliseconds);
    } else {
        post_membership(agent, (struct membership_event){.kind = kind});
    }
}

static void perform_agents(struct agent *agent, const struct agent_effect *effect) {
    switch (effect->kind) {
    case AGENT_EFFECT_CHECK_NODE:
        log_info(agent->log, "checking this node: %s", agent->config->node_check);
        agent_node_check_begin(agent->node_check);
        break;
    case AGENT_EFFECT_START_WORKERS:
        start_workers(agent);
        break;
    case AGENT_EFFECT_SIGNAL_WORKERS:
        if (effect->is_relayed && agent->config->is_signalled_by_slurm) {
            signal_passing_note(agent->passing, effect->signal, true);
        }
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
    case AGENT_EFFECT_ANNOUNCE_RESTART:
        announce(agent, MEMBERSHIP_EVENT_RESTART_ASKED, RESTART_PATIENCE_MILLISECONDS);
        break;
    case AGENT_EFFECT_DOUBT_FAILURE:
        announce(agent, MEMBERSHIP_EVENT_DOUBT_ASKED, REPORT_PATIENCE_MILLISECONDS);
        break;
    case AGENT_EFFECT_ANNOUNCE_FAILURE:
        announce(agent, MEMBERSHIP_EVENT_FAILURE_ASKED, REPORT_PATIENCE_MILLISECONDS);
        break;
    case AGENT_EFFECT_FINISH:
        finish(agent, &effect->outcome);
        break;
    case AGENT_EFFECT_JOIN:
    case AGENT_EFFECT_ENTER_BARRIER:
    case AGENT_EFFECT_ANNOUNCE_LEAVE:
    case AGENT_EFFECT_ANNOUNCE_SUCCESS:
    case AGENT_EFFECT_COUNT:
        break; /* the membership's */
    }
}

/* What other programs are told of standby workers. */
static void record_standby(struct agent *agent, const struct standby_effect *effect) {
    struct event_standby_record record = {.count = effect->told.count, .total = effect->told.total};
    if (effect->kind == STANDBY_EFFECT_TELL_READY) {
        record.what = EVENT_STANDBY_READY;
        agent_chronicle_note_spares(agent->chronicle, record.count, record.total);
    } else if (effect->kind == STANDBY_EFFECT_TELL_USED && effect->told.count > 0) {
        record.what = EVENT_STANDBY_USED;
    } else if (effect->kind == STANDBY_EFFECT_TELL_OFF) {
        record = (struct event_standby_record){.what = EVENT_STANDBY_DIRTY,
            .total = agent->preparation.worker_count,
            .reason = standby_off_name(effect->off.why)};
    } else {
        return;
    }
    agent_event_log_standby(agent->event_log, &record);
}

static void perform(struct agent *agent, const struct node_effect *effect) {
    if (effect->part == NODE_AGENT) {
        perform_agents(agent, &effect->agent);
        return;
    }
    if (effect->part == NODE_STANDBY) {
        record_standby(agent, &effect->standby);
        agent_standby_perform(agent->standby, &effect->standby);
        return;
    }
    agent_rendezvous_perform(agent->rendezvous, effect);
    if (effect->part == NODE_MEMBERSHIP &&
        effect->membership.kind == MEMBERSHIP_EFFECT_ASK_PROGRAM) {
        agent_audience_ask(
            agent->audience, effect->membership.ask.what, effect->membership.ask.attempt);
    }
    if (effect->part == NODE_MEMBERSHIP && effect->membership.kind == MEMBERSHIP_EFFECT_SETTLED) {
        event_loop_stop(agent->loop);
    }
}

/* The pump. */

static bool is_debugging(const struct agent *agent) {
    return agent->log->threshold <= LOG_LEVEL_DEBUG;
}

/* Which machine a line of the transcript is of; for the agent, its phase. */
static const char *name_of(const struct agent *agent, enum node_part part) {
    static const char *const names[NODE_PART_COUNT] = {
        [NODE_MEMBERSHIP] = "membership",
        [NODE_RENDEZVOUS] = "rendezvous",
        [NODE_ROUND] = "round",
        [NODE_STANDBY] = "standby",
        [NODE_SUCCESSION] = "succession",
    };
    return part == NODE_AGENT ? agent_phase_name(node_machine_agent(agent->node)->phase)
                              : names[part];
}

static void log_event(const struct agent *agent, const struct node_event *event) {
    struct text line = {0};
    node_event_describe(event, &line);
    log_debug(agent->log, "%s <- %s", name_of(agent, event->part), text_string(&line));
    text_clear(&line);
}

static void log_effect(const struct agent *agent, const struct node_effect *effect) {
    struct text line = {0};
    node_effect_describe(effect, &line);
    log_debug(agent->log, "%s -> %s", name_of(agent, effect->part), text_string(&line));
    text_clear(&line);
}

static const struct agent_outcome *find_outcome(const struct node_effects *effects) {
    for (size_t i = 0; i < effects->count; i++) {
        const struct node_effect *effect = &effects->items[i];
        if (effect->part == NODE_AGENT && effect->agent.kind == AGENT_EFFECT_FINISH) {
            return &effect->agent.outcome;
        }
    }
    return NULL;
}

/* The agent machine has taken an event; nothing of what it wants has been done yet. */
static void tell_of_step(struct agent *agent, const struct agent_event *event,
    enum agent_phase before, const struct node_effects *effects) {
    if (before == AGENT_JOINING && node_machine_agent(agent->node)->phase == AGENT_STARTING) {
        bool has_host = agent->node_settings.node.membership.kind == MEMBERSHIP_CHANGING &&
                        rendezvous_machine_has_host(node_machine_rendezvous(agent->node));
        agent_voice_place(&agent->voice, node_machine_knowledge(agent->node)->placement.group_rank,
            has_host, agent->preparation.worker_count);
        if (agent->node_settings.node.membership.kind == MEMBERSHIP_CHANGING) {
            agent_voice_nodes(&agent->voice, &agent->node_settings.node.rendezvous.identity,
                rendezvous_machine_state(node_machine_rendezvous(agent->node)));
        }
    }
    if (before != AGENT_STARTING && node_machine_agent(agent->node)->phase == AGENT_STARTING) {
        turn_cause(agent);
    } else if (before == AGENT_STARTING || before == AGENT_RUNNING) {
        explain_end(agent);
    }
    agent_story_step(&agent->story, event, before);
    worker_progress_step(agent->progress, before, node_machine_agent(agent->node)->phase);
    agent_chronicle_step(
        agent->chronicle, before, node_machine_agent(agent->node), event, find_outcome(effects));
    if (before == AGENT_JOINING && node_machine_agent(agent->node)->phase == AGENT_STARTING &&
        agent->node_settings.node.membership.kind == MEMBERSHIP_CHANGING) {
        agent_chronicle_note_record(
            agent->chronicle, rendezvous_machine_state(node_machine_rendezvous(agent->node)));
    }
    agent_joining_follow(agent->joining, before, node_machine_agent(agent->node)->phase);
    agent_event_log_step(agent->event_log, agent->workers, before, event->now);
    agent_metrics_step(agent->metrics, before, node_machine_agent(agent->node), event);
    agent_audience_step(agent->audience, before, node_machine_agent(agent->node), event);
    tell_group(agent, before);
}

static void keep_out(struct agent *agent, char *reason_taken, const char *option) {
    free(agent->unfit);
    agent->unfit = reason_taken;
    log_error(agent->log, "%s; it stays out of the job (%s)", agent->unfit, option);
    agent_chronicle_note_excluded(agent->chronicle, agent->unfit);
}

static void learn_of_exclusion(struct agent *agent) {
    int limit = agent->config->dynamic.settings.exclude_after;
    keep_out(agent,
        text_format("the workers of this node have failed first %d time%s, before all others",
            limit, limit == 1 ? "" : "s"),
        "--exclude-after");
}

/* The round that begins says so of a node that is needed. */
static void note_if_kept(struct agent *agent, const struct rendezvous_effect *effect) {
    if (effect->kind == RENDEZVOUS_EFFECT_WORLD &&
        agent->config->dynamic.settings.exclude_after > 0) {
        const char *reason = effect->world.state->reason;
        char *start =
            text_format(ROUND_REASON_NODE "%s" ROUND_REASON_STAYS, effect->world.identity.address);
        if (text_starts_with(reason, start)) {
            log_warning(agent->log, "%s (--exclude-after)", reason);
            agent_chronicle_note_kept(agent->chronicle, reason);
        }
        free(start);
    }
}

static void step(struct agent *agent, const struct node_event *event) {
    if (event->part == NODE_AGENT && event->agent.kind == AGENT_EVENT_EXCLUDED) {
        learn_of_exclusion(agent);
    }
    struct node_effects effects;
    enum agent_phase before = node_machine_agent(agent->node)->phase;
    if (is_debugging(agent)) {
        log_event(agent, event);
    }
    if (event->part == NODE_MEMBERSHIP && event->membership.kind == MEMBERSHIP_EVENT_HOSTING) {
        agent_voice_host(&agent->voice);
        agent_chronicle_note_host(agent->chronicle);
        agent_job_chronicle_host(agent->job_chronicle, event->membership.port);
    }
    if (event->part == NODE_MEMBERSHIP && event->membership.kind == MEMBERSHIP_EVENT_HOSTING_OVER) {
        agent_job_chronicle_host_no_more(agent->job_chronicle);
    }
    if (event->part == NODE_MEMBERSHIP &&
        event->membership.kind == MEMBERSHIP_EVENT_ROOT_CAUSE_LEARNT) {
        learn_cause(agent, event->membership.account);
    }
    agent_rendezvous_note_event(agent->rendezvous, event);
    node_machine_step(agent->node, &effects);
    agent_rendezvous_note_step(agent->rendezvous, event);
    if (event->part == NODE_AGENT) {
        tell_of_step(agent, &event->agent, before, &effects);
    }
    for (size_t i = 0; i < effects.count; i++) {
        const struct node_effect *effect = &effects.items[i];
        if (is_debugging(agent)) {
            log_effect(agent, effect);
        }
        if (effect->part == NODE_AGENT && effect->agent.kind == AGENT_EFFECT_JOIN &&
            effect->agent.join.ticket > 1) {
            keep_cause(agent);
            ask_about_restart(agent); /* unless its workers have just ended */
        }
        if (effect->part == NODE_RENDEZVOUS) {
            note_if_kept(agent, &effect->rendezvous);
        }
        agent_rendezvous_note_effect(agent->rendezvous, effect);
        if (!effect->is_internal) {
            perform(agent, effect);
        }
    }
}

/* What comes from inside a step waits until its effects are carried out. */
static void run_queue(struct agent *agent) {
    const struct node_event *event;
    agent->is_queueing = true;
    while (agent->owed_count == 0 && (event = node_machine_next(agent->node)) != NULL) {
        step(agent, event);
    }
    agent->is_queueing = false;
}

void agent_post(void *context, const struct node_event *event) {
    struct agent *agent = context;
    node_machine_post(
        agent->node, event, event_loop_now(agent->loop), event_loop_wall_time(agent->loop));
    if (!agent->is_queueing && agent->owed_count == 0) {
        run_queue(agent);
    }
}

void agent_start(struct agent *agent) {
    agent_story_begin(&agent->story);
    take(agent, (struct agent_event){.kind = AGENT_EVENT_START});
    run_queue(agent);
}

/* What the shells below report, as events. */

void agent_deadline_passed(void *context) {
    take_kind(context, AGENT_EVENT_TIMER_FIRED);
}

/* Who has pressed Ctrl-C wants to know how long it takes, and how to make it shorter. */
static void tell_of_signal(const struct agent *agent, int signal) {
    const struct agent_machine *machine = node_machine_agent(agent->node);
    const char *name = signal_name_from_number(signal);
    bool has_workers = machine->phase == AGENT_STARTING || machine->phase == AGENT_RUNNING ||
                       machine->phase == AGENT_STOPPING;
    if (machine->phase == AGENT_STOPPING && machine->received_signal != 0) {
        log_warning(agent->log, "Received %s, killing workers", name);
    } else if (has_workers && signal_repetition_is_from_keyboard(signal)) {
        log_warning(agent->log,
            "Received %s, shutting down workers: they have %g s (--shutdown-timeout), and a second "
            "signal kills them",
            name, duration_seconds(agent->config->shutdown_timeout));
    } else if (has_workers) {
        log_warning(agent->log,
            "Received %s, shutting down workers: they have %g s (--shutdown-timeout), and a second "
            "signal after %d s kills them",
            name, duration_seconds(agent->config->shutdown_timeout), SIGNAL_REPETITION_SECONDS);
    } else {
        log_warning(agent->log, "Received %s, shutting down workers", name);
    }
}

void agent_signal_received(void *context, int signal) {
    struct agent *agent = context;
    if (agent->signalled.nanoseconds == 0) {
        agent->signalled = event_loop_now(agent->loop);
    }
    if (agent->node == NULL) { /* it is still being prepared */
        agent->outcome = (struct agent_outcome){.kind = AGENT_OUTCOME_SIGNALLED, .signal = signal};
        event_loop_stop(agent->loop);
        return;
    }
    if (node_machine_agent(agent->node)->phase == AGENT_DONE) {
        log_warning(agent->log, "Received %s, not waiting for other nodes any longer",
            signal_name_from_number(signal));
        event_loop_stop(agent->loop);
        return;
    }
    tell_of_signal(agent, signal);
    take(agent, (struct agent_event){.kind = AGENT_EVENT_SIGNAL_RECEIVED, .signal = signal});
}

void agent_signal_came(void *context, int signal) {
    struct agent *agent = context;
    signal_passing_note(agent->passing, signal, false);
    if (signal_repetition_take(&agent->repetition, signal, event_loop_now(agent->loop))) {
        log_info(agent->log, "Received %s once more, which is taken for the same one",
            signal_name_from_number(signal));
    } else {
        agent_signal_received(agent, signal);
    }
}

void agent_watch_signals(void *context) {
    struct agent *agent = context;
    if (agent->passing != NULL || access("/proc/self/cgroup", F_OK) != 0) {
        return;
    }
    agent->passing = signal_passing_new(agent->loop, agent->log);
    if (agent->passing != NULL) {
        agent_workers_leave_out(agent->workers, signal_passing_witness(agent->passing));
    }
}

void agent_placement_told(
    void *context, enum membership_event_kind kind, const struct membership_told *told) {
    post_membership(context, (struct membership_event){.kind = kind, .told = told});
}

void agent_timer_expired(void *context) {
    struct agent *agent = context;
    log_warning(agent->log, "--on-timer-expiry exit-agent: shutting down workers");
    take(agent, (struct agent_event){.kind = AGENT_EVENT_SIGNAL_RECEIVED, .signal = SIGTERM});
}

void agent_worker_stepped(void *context, bool is_new) {
    take(context, (struct agent_event){.kind = AGENT_EVENT_STEPPED, .is_new = is_new});
}

void agent_node_checked(void *context, const char *reason) {
    struct agent *agent = context;
    if (reason == NULL) {
        take_kind(agent, AGENT_EVENT_CHECK_PASSED);
        return;
    }
    keep_out(agent, text_format("the check of this node has failed: %s", reason), "--node-check");
    take_kind(agent, AGENT_EVENT_CHECK_FAILED);
}

void agent_look_begun(void *context) {
    take_kind(context, AGENT_EVENT_LOOK_BEGUN);
}

void agent_look_over(void *context) {
    take_kind(context, AGENT_EVENT_LOOK_OVER);
}

struct duration agent_standstill(void *context) {
    const struct agent *agent = context;
    return rendezvous_machine_may_be_missed(node_machine_rendezvous(agent->node))
               ? rendezvous_settings_standstill(&agent->config->dynamic.settings)
               : (struct duration){0};
}

/* The workers are to run, or have run, in a world that is over for this node. */
static bool has_world(const struct agent *agent) {
    const struct agent_machine *machine = node_machine_agent(agent->node);
    return machine->phase == AGENT_STARTING || machine->phase == AGENT_RUNNING ||
           (machine->phase == AGENT_STOPPING && machine->stop_reason == AGENT_STOP_CLEAN_UP);
}

void agent_stood_still(void *context, struct duration how_long) {
    struct agent *agent = context;
    char *reason = text_format("this agent stood still for %.1f s, and its guardian "
                               "ended its workers",
        duration_seconds(how_long));
    if (has_world(agent)) {
        agent_rendezvous_give_up(agent->rendezvous, reason);
    } else {
        log_warning(agent->log, "%s", reason);
    }
    free(reason);
}

void agent_watchdog_event(
    void *context, enum event_watchdog what, const struct event_timer_record *timer) {
    struct agent *agent = context;
    agent_event_log_watchdog(agent->event_log, what, timer);
    if (what == EVENT_WATCHDOG_TIMER_EXPIRED) {
        agent_chronicle_note_timer(agent->chronicle, timer);
    }
    agent_metrics_watchdog(agent->metrics, what, timer, event_loop_wall_time(agent->loop));
}

void agent_rendezvous_recorded(void *context, const struct event_rendezvous *record) {
    const struct agent *agent = context;
    if (agent->config->is_placed) {
        return; /* the program's rendezvous records its own steps */
    }
    agent_event_log_rendezvous(agent->event_log, record);
}

/* Worker events. */

/* After this time the start of workers is over, and short jobs are, too. */
#define CALM_MILLISECONDS 500

static void workers_started(void *context) {
    struct agent *agent = context;
    signal_passing_note_start(agent->passing, true);
    event_timer_set(agent->calm,
        instant_after(event_loop_now(agent->loop), duration_from_milliseconds(CALM_MILLISECONDS)));
    take_kind(agent, AGENT_EVENT_WORKERS_STARTED);
    begin_monitoring(agent);
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
    worker_progress_look(agent->progress); /* its last steps are before its end */
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
        agent_look_over, agent, NULL};
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

static void tell_hang(const struct agent *agent, int local_rank, const struct job_hang *hang) {
    char *path = agent->config->evidence != LAUNCH_EVIDENCE_OFF
                     ? agent_workers_log_file(agent->workers, local_rank, LOG_TREE_HANG_EVIDENCE)
                     : NULL;
    log_warning(agent->log, "hang: %s%s%s", hang->what, path != NULL ? "; see " : "",
        path != NULL ? path : "");
    free(path);
}

int agent_hang_found(void *context, const struct job_hang *hang, bool is_of_job) {
    struct agent *agent = context;
    int local_rank = hang->rank - node_machine_knowledge(agent->node)->placement.ranks.base_rank;
    if (node_machine_agent(agent->node)->phase != AGENT_RUNNING || local_rank < 0 ||
        local_rank >= agent->preparation.worker_count) {
        return -1; /* the node of that rank does what is to be done */
    }
    if (!is_of_job) {
        log_warning(agent->log,
            "hang: of this node %s; no agent hosts the store of this job, so what the other nodes "
            "do is not known here, and nothing is done about it",
            hang->what);
        return -1;
    }
    tell_hang(agent, local_rank, hang);
    agent_chronicle_note_hang(agent->chronicle, local_rank, hang);
    if (!agent->config->hang.restarts) {
        return -1;
    }
    end_worker(agent, local_rank, "hang", "by the agent, since ", hang->what);
    return local_rank;
}

/* The program's refusal comes first: this node then joins no further round. */
static void all_gone(void *context) {
    struct agent *agent = context;
    const struct agent_machine *machine = node_machine_agent(agent->node);
    bool is_restart =
        machine->phase == AGENT_STOPPING && machine->stop_reason == AGENT_STOP_RESTART;
    if (is_restart) {
        ask_about_restart(agent);
    }
    take_kind(agent, AGENT_EVENT_ALL_GONE);
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
