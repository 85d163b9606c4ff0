/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/agent/agent_machine.h"

#include <assert.h>
#include <inttypes.h>

#include "core/workers/signal_name.h"

/* How long the agent waits for processes to vanish after SIGKILL before it abandons them. Such
 * processes are in an uninterruptible system call. */
#define AGENT_KILL_PATIENCE_MILLISECONDS 30000

static void restart_policy_init(
    struct restart_policy *policy, int maximum, struct duration window) {
    *policy = (struct restart_policy){.maximum = maximum, .window = window};
}

static void restart_policy_count(struct restart_policy *policy, struct instant now) {
    policy->counted = policy->window.nanoseconds > 0
                          ? restart_history_count(&policy->history, policy->window, now)
                          : policy->used;
}

/* The attempt that runs: 0 for the first start. */
static int restart_policy_attempt(const struct restart_policy *policy) {
    return policy->used;
}

int restart_policy_remaining(const struct restart_policy *policy) {
    return policy->counted < policy->maximum ? policy->maximum - policy->counted : 0;
}

static void restart_policy_note(struct restart_policy *policy, int used,
    const struct restart_ages *ages_or_null, struct instant now) {
    policy->used = used;
    restart_history_note(&policy->history, used, ages_or_null, now);
    restart_policy_count(policy, now);
}

/* Uses one restart. Returns false, and uses none, when none is left. */
static bool restart_policy_take(struct restart_policy *policy, struct instant now) {
    restart_policy_count(policy, now);
    if (policy->counted >= policy->maximum) {
        return false;
    }
    restart_policy_note(policy, policy->used + 1, NULL, now);
    return true;
}

/* Goes to `attempt`, a later one, to which another node has restarted the job. Returns false, and
 * changes nothing, when this node allows fewer restarts. */
static bool restart_policy_advance_to(
    struct restart_policy *policy, int attempt, struct instant now) {
    restart_policy_count(policy, now);
    /* Of a restart that is as old as the window the other node may know first. */
    if (policy->window.nanoseconds == 0 && attempt > policy->maximum) {
        return false;
    }
    restart_policy_note(policy, attempt, NULL, now);
    return true;
}

/* Attempts that bring the job no further. */

/* The first pause between two of them; each one is twice as long as the one before. */
#define FIRST_PAUSE_MILLISECONDS 100

static void fruitless_attempts_begin(struct fruitless_attempts *attempts, struct instant now) {
    if (!attempts->has_begun) {
        attempts->has_begun = true;
        attempts->began = now;
    }
}

/* The attempt has failed, here or on another node. */
static void fruitless_attempts_judge(struct fruitless_attempts *attempts) {
    struct duration lasted = instant_until(attempts->began, attempts->ended);
    bool is_fruitless = attempts->knows_steps ? !attempts->has_progressed
                                              : duration_seconds(lasted) < AGENT_FRUITLESS_SECONDS;
    attempts->count = is_fruitless ? attempts->count + 1 : 0;
    attempts->has_progressed = false;
    attempts->has_begun = false;
}

bool fruitless_attempts_are_enough(const struct fruitless_attempts *attempts) {
    return attempts->limit > 0 && attempts->count >= attempts->limit;
}

struct duration fruitless_attempts_pause(const struct fruitless_attempts *attempts) {
    int64_t most = attempts->longest_pause.nanoseconds;
    int64_t pause = duration_from_milliseconds(FIRST_PAUSE_MILLISECONDS).nanoseconds;
    for (int i = 1; i < attempts->count && pause < most; i++) {
        pause = pause > most / 2 ? most : 2 * pause;
    }
    return (struct duration){attempts->count == 0 ? 0 : pause > most ? most : pause};
}

/* Step. */

/* An event and its effects, as the handlers have them. */
struct agent_step {
    struct agent_machine *machine;
    const struct agent_event *event;
    struct agent_effects *effects;
};

/* By which workers are asked to end. */
#define SIGNAL_NUMBER_TERMINATE 15

static void agent_step_push(struct agent_step *step, struct agent_effect effect) {
    assert(step->effects->count < AGENT_EFFECTS_MAXIMUM);
    step->effects->items[step->effects->count++] = effect;
}

static void agent_step_push_kind(struct agent_step *step, enum agent_effect_kind kind) {
    agent_step_push(step, (struct agent_effect){.kind = kind});
}

/* For effects that name the attempt. */
static void agent_step_push_attempt(struct agent_step *step, enum agent_effect_kind kind) {
    agent_step_push(
        step, (struct agent_effect){.kind = kind, .attempt = agent_machine_attempt(step->machine)});
}

static void agent_step_arm_timer(struct agent_step *step, struct instant deadline) {
    step->machine->is_timer_armed = true;
    step->machine->deadline = deadline;
    agent_step_push(
        step, (struct agent_effect){.kind = AGENT_EFFECT_ARM_TIMER, .deadline = deadline});
}

/* Does nothing when no timer is armed. */
static void agent_step_disarm_timer(struct agent_step *step) {
    if (step->machine->is_timer_armed) {
        step->machine->is_timer_armed = false;
        agent_step_push_kind(step, AGENT_EFFECT_DISARM_TIMER);
    }
}

/* Announces something to other nodes, if the job may have any and this node has asked to join. */
static void agent_step_announce(struct agent_step *step, enum agent_effect_kind kind) {
    if (step->machine->has_peers && step->machine->ticket > 0) {
        agent_step_push(
            step, (struct agent_effect){.kind = kind, .signal = step->machine->received_signal});
    }
}

static void agent_step_finish(struct agent_step *step, enum agent_outcome_kind kind) {
    struct agent_outcome outcome = {
        .kind = kind,
        .signal = step->machine->received_signal,
        .has_abandoned_processes = step->machine->has_abandoned_processes,
    };
    agent_step_disarm_timer(step);
    step->machine->phase = AGENT_DONE;
    agent_step_push(step, (struct agent_effect){.kind = AGENT_EFFECT_FINISH, .outcome = outcome});
}

/* The signal that is sent now is the one that another node got, and has told of. */
static bool is_relayed(const struct agent_step *step) {
    bool is_of_peer =
        step->event->kind == AGENT_EVENT_PEER_FAILED || step->event->kind == AGENT_EVENT_ROUND_OVER;
    return is_of_peer && step->event->signal != 0;
}

static void agent_step_signal_workers(struct agent_step *step, int signal) {
    struct agent_machine *machine = step->machine;
    if (machine->hold.look_count > 0) {
        machine->hold.signal = signal;
        return;
    }
    machine->hold.signal = 0;
    machine->stop_signal = signal;
    agent_step_push(step,
        (struct agent_effect){
            .kind = AGENT_EFFECT_SIGNAL_WORKERS, .is_relayed = is_relayed(step), .signal = signal});
    if (!machine->is_timer_armed) {
        agent_step_arm_timer(step, instant_after(step->event->now, machine->shutdown_timeout));
    }
}

/* Sends the signal once all looks at workers are over. A signal could end the worker under a look,
 * and its evidence would be lost. */
static void agent_step_begin_stop(
    struct agent_step *step, enum agent_stop_reason reason, int signal) {
    step->machine->phase = AGENT_STOPPING;
    step->machine->stop_reason = reason;
    step->machine->fruitless.ended = step->event->now;
    agent_step_signal_workers(step, signal);
}

/* Kills at once, without waiting for looks. */
static void agent_step_kill_workers(struct agent_step *step) {
    struct duration patience = duration_from_milliseconds(AGENT_KILL_PATIENCE_MILLISECONDS);
    step->machine->is_killing = true;
    step->machine->hold = (struct agent_hold){.look_count = step->machine->hold.look_count};
    agent_step_push_kind(step, AGENT_EFFECT_KILL_WORKERS);
    agent_step_arm_timer(step, instant_after(step->event->now, patience));
}

/* This agent cannot go on. Other nodes may, as after a signal to this one. */

/* This agent cannot go on: before workers run, while they run, and while they are stopped. */
static void agent_step_finish_unable(struct agent_step *step) {
    agent_step_announce(step, AGENT_EFFECT_ANNOUNCE_LEAVE);
    agent_step_finish(step, AGENT_OUTCOME_FAILED);
}

static void agent_step_stop_unable(struct agent_step *step) {
    step->machine->looks_before_killing = false;
    agent_step_announce(step, AGENT_EFFECT_ANNOUNCE_LEAVE);
    agent_step_begin_stop(step, AGENT_STOP_FAILURE, SIGNAL_NUMBER_TERMINATE);
}

/* Workers that have succeeded stay so, and the exit barrier follows. */
static void agent_step_fail_unable_instead(struct agent_step *step) {
    struct agent_machine *machine = step->machine;
    machine->looks_before_killing = false;
    if (machine->stop_reason == AGENT_STOP_RESTART ||
        machine->stop_reason == AGENT_STOP_DOUBTED_FAILURE) {
        machine->stop_reason = AGENT_STOP_FAILURE;
        agent_step_announce(step, AGENT_EFFECT_ANNOUNCE_LEAVE);
    }
}

/* Machine. */

static void begin(struct agent_step *step);
static void join(struct agent_step *step);
static void end_pause(struct agent_step *step);
static void pass_check(struct agent_step *step);
static void finish_unfit(struct agent_step *step);
static void note_check_passed(struct agent_step *step);
static void note_check_failed(struct agent_step *step);
static void follow_peer_or_fail(struct agent_step *step);
static void finish_excluded(struct agent_step *step);
static void exclude_while_stopping(struct agent_step *step);
static void note_step(struct agent_step *step);
static void start_workers(struct agent_step *step);
static void fail_join(struct agent_step *step);
static void run_workers(struct agent_step *step);
static void fail_start(struct agent_step *step);
static void record_ending(struct agent_step *step);
static void record_exit(struct agent_step *step);
static void give_up_stuck(struct agent_step *step);
static void settle_stop(struct agent_step *step);
static void escalate_stop(struct agent_step *step);
static void note_look_begun(struct agent_step *step);
static void note_look_over(struct agent_step *step);
static void finish_for_signal(struct agent_step *step);
static void stop_for_signal(struct agent_step *step);
static void obey_signal_while_stopping(struct agent_step *step);
static void finish_well(struct agent_step *step);
static void finish_alone(struct agent_step *step);
static void finish_unneeded(struct agent_step *step);
static void finish_for_peer(struct agent_step *step);
static void stop_for_peer_restart(struct agent_step *step);
static void restart_instead(struct agent_step *step);
static void rejoin_for_peer(struct agent_step *step);
static void stop_for_peer_failure(struct agent_step *step);
static void fail_for_peer_instead(struct agent_step *step);
static void stop_for_new_round(struct agent_step *step);
static void restart_for_new_round(struct agent_step *step);
static void believe_failure(struct agent_step *step);
static void fail_after_doubt(struct agent_step *step);

/* The whole life of an agent. Events without a handler are ignored. */
static void (*const handlers[AGENT_PHASE_COUNT][AGENT_EVENT_COUNT])(struct agent_step *step) = {
    [AGENT_IDLE] =
        {
            [AGENT_EVENT_START] = begin,
            [AGENT_EVENT_SIGNAL_RECEIVED] = finish_for_signal,
            [AGENT_EVENT_CANNOT_GO_ON] = agent_step_finish_unable,
        },
    [AGENT_HELD] =
        {
            [AGENT_EVENT_CHECK_PASSED] = pass_check,
            [AGENT_EVENT_CHECK_FAILED] = finish_unfit,
            [AGENT_EVENT_TIMER_FIRED] = end_pause,
            [AGENT_EVENT_SIGNAL_RECEIVED] = finish_for_signal,
            [AGENT_EVENT_PEER_RESTART] = follow_peer_or_fail,
            [AGENT_EVENT_EXCLUDED] = finish_excluded,
            [AGENT_EVENT_PEER_FAILED] = finish_for_peer,
            [AGENT_EVENT_CANNOT_GO_ON] = agent_step_finish_unable,
        },
    [AGENT_JOINING] =
        {
            [AGENT_EVENT_JOINED] = start_workers,
            [AGENT_EVENT_JOIN_FAILED] = fail_join,
            [AGENT_EVENT_SIGNAL_RECEIVED] = finish_for_signal,
            [AGENT_EVENT_PEER_FAILED] = finish_for_peer,
            [AGENT_EVENT_JOB_OVER] = finish_unneeded,
            [AGENT_EVENT_EXCLUDED] = finish_excluded,
            [AGENT_EVENT_CANNOT_GO_ON] = agent_step_finish_unable,
        },
    [AGENT_STARTING] =
        {
            [AGENT_EVENT_WORKERS_STARTED] = run_workers,
            [AGENT_EVENT_START_FAILED] = fail_start,
            [AGENT_EVENT_WORKER_ENDING] = record_ending,
            [AGENT_EVENT_WORKER_EXITED] = record_exit,
            [AGENT_EVENT_WORKER_STUCK] = give_up_stuck,
            [AGENT_EVENT_LOOK_BEGUN] = note_look_begun,
            [AGENT_EVENT_LOOK_OVER] = note_look_over,
            [AGENT_EVENT_SIGNAL_RECEIVED] = stop_for_signal,
            [AGENT_EVENT_PEER_RESTART] = stop_for_peer_restart,
            [AGENT_EVENT_PEER_FAILED] = stop_for_peer_failure,
            [AGENT_EVENT_ROUND_OVER] = stop_for_new_round,
            [AGENT_EVENT_CANNOT_GO_ON] = agent_step_stop_unable,
        },
    [AGENT_RUNNING] =
        {
            [AGENT_EVENT_WORKER_ENDING] = record_ending,
            [AGENT_EVENT_WORKER_EXITED] = record_exit,
            [AGENT_EVENT_WORKER_STUCK] = give_up_stuck,
            [AGENT_EVENT_LOOK_BEGUN] = note_look_begun,
            [AGENT_EVENT_LOOK_OVER] = note_look_over,
            [AGENT_EVENT_SIGNAL_RECEIVED] = stop_for_signal,
            [AGENT_EVENT_PEER_RESTART] = stop_for_peer_restart,
            [AGENT_EVENT_PEER_FAILED] = stop_for_peer_failure,
            [AGENT_EVENT_ROUND_OVER] = stop_for_new_round,
            [AGENT_EVENT_STEPPED] = note_step,
            [AGENT_EVENT_CANNOT_GO_ON] = agent_step_stop_unable,
        },
    [AGENT_STOPPING] =
        {
            [AGENT_EVENT_WORKER_EXITED] = record_exit,
            [AGENT_EVENT_ALL_GONE] = settle_stop,
            [AGENT_EVENT_TIMER_FIRED] = escalate_stop,
            [AGENT_EVENT_LOOK_BEGUN] = note_look_begun,
            [AGENT_EVENT_LOOK_OVER] = note_look_over,
            [AGENT_EVENT_SIGNAL_RECEIVED] = obey_signal_while_stopping,
            [AGENT_EVENT_PEER_RESTART] = restart_instead,
            [AGENT_EVENT_PEER_FAILED] = fail_for_peer_instead,
            [AGENT_EVENT_ROUND_OVER] = restart_for_new_round,
            [AGENT_EVENT_FAILURE_STANDS] = believe_failure,
            [AGENT_EVENT_EXCLUDED] = exclude_while_stopping,
            [AGENT_EVENT_CHECK_PASSED] = note_check_passed,
            [AGENT_EVENT_CHECK_FAILED] = note_check_failed,
            [AGENT_EVENT_CANNOT_GO_ON] = agent_step_fail_unable_instead,
        },
    [AGENT_LEAVING] =
        {
            [AGENT_EVENT_BARRIER_PASSED] = finish_well,
            [AGENT_EVENT_BARRIER_FAILED] = finish_alone,
            [AGENT_EVENT_SIGNAL_RECEIVED] = finish_for_signal,
            [AGENT_EVENT_PEER_RESTART] = rejoin_for_peer,
            [AGENT_EVENT_PEER_FAILED] = finish_unneeded,
            [AGENT_EVENT_ROUND_OVER] = join,
            [AGENT_EVENT_CANNOT_GO_ON] = finish_alone,
        },
    [AGENT_DOUBTING] =
        {
            [AGENT_EVENT_FAILURE_STANDS] = fail_after_doubt,
            [AGENT_EVENT_SIGNAL_RECEIVED] = finish_for_signal,
            [AGENT_EVENT_PEER_FAILED] = fail_after_doubt,
            [AGENT_EVENT_ROUND_OVER] = join,
            [AGENT_EVENT_CANNOT_GO_ON] = agent_step_finish_unable,
        },
};

void agent_machine_init(struct agent_machine *machine, const struct agent_settings *settings) {
    *machine = (struct agent_machine){
        .shutdown_timeout = settings->shutdown_timeout,
        .has_peers = settings->has_peers,
        .looks_before_killing = settings->looks_before_killing,
        .may_lose_peers = settings->may_lose_peers,
        .checks_node = settings->checks_node,
        .fruitless = {.limit = settings->no_progress_restarts,
            .longest_pause = settings->restart_backoff},
    };
    restart_policy_init(&machine->restarts, settings->max_restarts, settings->restart_window);
    worker_group_init(&machine->workers, (size_t)settings->worker_count);
}

void agent_machine_clear(struct agent_machine *machine) {
    worker_group_clear(&machine->workers);
}

int agent_machine_attempt(const struct agent_machine *machine) {
    return restart_policy_attempt(&machine->restarts);
}

void agent_machine_step(
    struct agent_machine *machine, const struct agent_event *event, struct agent_effects *effects) {
    effects->count = 0;
    struct agent_step step = {.machine = machine, .event = event, .effects = effects};
    void (*handler)(struct agent_step *) = handlers[machine->phase][event->kind];
    if (handler != NULL) {
        handler(&step);
    }
}

static void join(struct agent_step *step) {
    struct agent_machine *machine = step->machine;
    machine->phase = AGENT_JOINING;
    machine->ticket++;
    agent_step_push(step, (struct agent_effect){.kind = AGENT_EFFECT_JOIN,
                              .join = {machine->ticket, agent_machine_attempt(machine)}});
}

/* Held. */

static void check_node(struct agent_step *step) {
    if (step->machine->checks_node && !step->machine->is_checking) {
        step->machine->is_checking = true;
        agent_step_push_kind(step, AGENT_EFFECT_CHECK_NODE);
    }
}

static void begin(struct agent_step *step) {
    check_node(step);
    if (step->machine->is_checking) {
        step->machine->phase = AGENT_HELD;
    } else {
        join(step);
    }
}

/* Joins as soon as the node is checked and the pause is over. */
static void join_when_ready(struct agent_step *step) {
    struct agent_machine *machine = step->machine;
    struct instant end = machine->fruitless.pause_end;
    if (!machine->is_checking && !instant_is_before(step->event->now, end)) {
        join(step);
        return;
    }
    machine->phase = AGENT_HELD;
    if (!machine->is_checking) {
        agent_step_arm_timer(step, end);
    }
}

static void end_pause(struct agent_step *step) {
    struct agent_machine *machine = step->machine;
    if (machine->is_timer_armed && !instant_is_before(step->event->now, machine->deadline)) {
        machine->is_timer_armed = false;
        join_when_ready(step);
    }
}

static void pass_check(struct agent_step *step) {
    if (step->machine->is_checking) {
        step->machine->is_checking = false;
        join_when_ready(step);
    }
}

static void finish_unfit(struct agent_step *step) {
    if (step->machine->is_checking) {
        step->machine->is_checking = false;
        agent_step_announce(step, AGENT_EFFECT_ANNOUNCE_LEAVE);
        agent_step_finish(step, AGENT_OUTCOME_UNFIT);
    }
}

static void note_check_passed(struct agent_step *step) {
    step->machine->is_checking = false;
}

/* The others go on without this node. What ends it anyhow stays the outcome. */
static void note_check_failed(struct agent_step *step) {
    struct agent_machine *machine = step->machine;
    machine->is_checking = false;
    if (machine->stop_reason == AGENT_STOP_RESTART) {
        machine->stop_reason = AGENT_STOP_UNFIT;
        agent_step_announce(step, AGENT_EFFECT_ANNOUNCE_LEAVE);
    }
}

static void finish_excluded(struct agent_step *step) {
    agent_step_announce(step, AGENT_EFFECT_ANNOUNCE_LEAVE);
    agent_step_finish(step, AGENT_OUTCOME_EXCLUDED);
}

/* What ends it anyhow stays the outcome. */
static void exclude_while_stopping(struct agent_step *step) {
    if (step->machine->stop_reason == AGENT_STOP_RESTART) {
        step->machine->stop_reason = AGENT_STOP_EXCLUDED;
        agent_step_announce(step, AGENT_EFFECT_ANNOUNCE_LEAVE);
    }
}

static void note_step(struct agent_step *step) {
    struct fruitless_attempts *attempts = &step->machine->fruitless;
    attempts->knows_steps = true;
    attempts->has_progressed = attempts->has_progressed || step->event->is_new;
}

static enum agent_outcome_kind outcome_of_stop(enum agent_stop_reason reason) {
    switch (reason) {
    case AGENT_STOP_SIGNAL:
        return AGENT_OUTCOME_SIGNALLED;
    case AGENT_STOP_PEER_FAILURE:
        return AGENT_OUTCOME_PEER_FAILED;
    case AGENT_STOP_CLEAN_UP:
        return AGENT_OUTCOME_SUCCEEDED;
    case AGENT_STOP_UNFIT:
        return AGENT_OUTCOME_UNFIT;
    case AGENT_STOP_EXCLUDED:
        return AGENT_OUTCOME_EXCLUDED;
    case AGENT_STOP_NONE:
    case AGENT_STOP_RESTART:
    case AGENT_STOP_DOUBTED_FAILURE:
    case AGENT_STOP_FAILURE:
        break;
    }
    return AGENT_OUTCOME_FAILED;
}

/* Joining and starting. */

static void start_workers(struct agent_step *step) {
    struct agent_machine *machine = step->machine;
    if (step->event->joined.ticket != machine->ticket) {
        return;
    }
    if (machine->fruitless.has_begun &&
        step->event->joined.restarts > restart_policy_attempt(&machine->restarts)) {
        fruitless_attempts_judge(&machine->fruitless); /* a worker of another node has failed */
    }
    /* The number may be smaller or larger than here. When it is larger than this node allows, no
     * restart remains. */
    restart_policy_note(&machine->restarts, step->event->joined.restarts, &step->event->joined.ages,
        step->event->now);
    fruitless_attempts_begin(&machine->fruitless, step->event->now);
    machine->phase = AGENT_STARTING;
    machine->stop_reason = AGENT_STOP_NONE;
    machine->stop_signal = 0;
    machine->is_killing = false;
    machine->hold = (struct agent_hold){0};
    worker_group_reset(&machine->workers);
    agent_step_push_attempt(step, AGENT_EFFECT_START_WORKERS);
}

static void fail_join(struct agent_step *step) {
    if (step->event->ticket == step->machine->ticket) {
        agent_step_announce(step, AGENT_EFFECT_ANNOUNCE_LEAVE);
        agent_step_finish(step, AGENT_OUTCOME_JOIN_FAILED);
    }
}

static void run_workers(struct agent_step *step) {
    step->machine->phase = AGENT_RUNNING;
}

/* A program that cannot be executed now cannot be executed after a restart either, so there is
 * none. */
static void fail_start(struct agent_step *step) {
    worker_group_record_start_failure(&step->machine->workers, step->event->start_failed.local_rank,
        step->event->start_failed.message, step->event->start_failed.observed);
    agent_step_announce(step, AGENT_EFFECT_ANNOUNCE_FAILURE);
    agent_step_begin_stop(step, AGENT_STOP_FAILURE, SIGNAL_NUMBER_TERMINATE);
}

/* The end of workers. */

/* Whether the signal that stopped the worker group ended this worker. Shells and other programs
 * that catch the signal exit with 128 + signal. */
static bool is_end_by_stop_signal(const struct agent_machine *machine, struct process_exit exit) {
    if (machine->phase != AGENT_STOPPING) {
        return false;
    }
    if (!exit.is_signal) {
        return exit.value == 128 + machine->stop_signal;
    }
    return exit.value == machine->stop_signal ||
           (machine->is_killing && exit.value == SIGNAL_NUMBER_KILL);
}

static void stop_after_failure(struct agent_step *step) {
    enum agent_stop_reason reason = AGENT_STOP_FAILURE;
    step->machine->fruitless.ended = step->event->now;
    fruitless_attempts_judge(&step->machine->fruitless);
    if (!fruitless_attempts_are_enough(&step->machine->fruitless) &&
        restart_policy_take(&step->machine->restarts, step->event->now)) {
        reason = AGENT_STOP_RESTART;
        step->machine->fruitless.pause_end =
            instant_after(step->event->now, fruitless_attempts_pause(&step->machine->fruitless));
        if (step->machine->has_peers) {
            agent_step_push_attempt(step, AGENT_EFFECT_ANNOUNCE_RESTART);
        }
    } else if (step->machine->may_lose_peers) {
        reason = AGENT_STOP_DOUBTED_FAILURE;
        agent_step_push_kind(step, AGENT_EFFECT_DOUBT_FAILURE);
    } else {
        agent_step_announce(step, AGENT_EFFECT_ANNOUNCE_FAILURE);
    }
    agent_step_begin_stop(step, reason, SIGNAL_NUMBER_TERMINATE);
    if (reason == AGENT_STOP_RESTART) {
        check_node(step);
    }
}

/* A worker may exit with 0 while other workers run. While the agent stops, exits are only recorded.
 */
static void record_exit(struct agent_step *step) {
    struct worker_group *workers = &step->machine->workers;
    struct process_exit exit = step->event->worker_exited.exit;
    bool is_recorded = worker_group_record_exit(workers, step->event->worker_exited.local_rank,
        exit, step->event->worker_exited.observed, is_end_by_stop_signal(step->machine, exit));
    if (!is_recorded || step->machine->phase == AGENT_STOPPING) {
        return;
    }
    if (worker_group_has_failure(workers)) {
        stop_after_failure(step);
    } else if (worker_group_has_succeeded(workers)) {
        agent_step_begin_stop(step, AGENT_STOP_CLEAN_UP, SIGNAL_NUMBER_TERMINATE);
    }
}

/* Early news of a failure. While the agent stops it is of no use, and the worker's end tells the
 * same. */
static void record_ending(struct agent_step *step) {
    if (worker_group_record_ending(&step->machine->workers, step->event->worker_exited.local_rank,
            step->event->worker_exited.exit, step->event->worker_exited.observed)) {
        stop_after_failure(step);
    }
}

/* There is no restart for a worker that hangs in the kernel. It still holds the resource on which
 * it hangs, most often a device, and a new worker would need the same resource. */
static void give_up_stuck(struct agent_step *step) {
    if (worker_group_record_stuck(&step->machine->workers, step->event->worker_stuck.local_rank,
            step->event->worker_stuck.stuck, step->event->worker_stuck.observed)) {
        agent_step_announce(step, AGENT_EFFECT_ANNOUNCE_FAILURE);
        agent_step_begin_stop(step, AGENT_STOP_FAILURE, SIGNAL_NUMBER_TERMINATE);
    }
}

/* Stopping. */

static void settle_stop(struct agent_step *step) {
    struct agent_machine *machine = step->machine;
    agent_step_disarm_timer(step);
    if (machine->stop_reason == AGENT_STOP_RESTART) {
        join_when_ready(step);
    } else if (machine->stop_reason == AGENT_STOP_DOUBTED_FAILURE) {
        machine->phase = AGENT_DOUBTING;
    } else if (machine->stop_reason == AGENT_STOP_CLEAN_UP && machine->has_peers) {
        machine->phase = AGENT_LEAVING;
        agent_step_push_attempt(step, AGENT_EFFECT_ENTER_BARRIER);
    } else {
        agent_step_finish(step, outcome_of_stop(machine->stop_reason));
    }
}

/* No worker is started beside processes that cannot be ended. So a restart becomes a failure, but
 * only of this node. */
static void abandon_processes(struct agent_step *step) {
    struct agent_machine *machine = step->machine;
    machine->is_timer_armed = false;
    machine->has_abandoned_processes = true;
    if (machine->stop_reason == AGENT_STOP_RESTART ||
        machine->stop_reason == AGENT_STOP_DOUBTED_FAILURE) {
        machine->stop_reason = AGENT_STOP_FAILURE;
        agent_step_announce(step, AGENT_EFFECT_ANNOUNCE_LEAVE);
    }
    settle_stop(step);
}

static void escalate_stop(struct agent_step *step) {
    struct agent_machine *machine = step->machine;
    if (!machine->is_timer_armed || instant_is_before(step->event->now, machine->deadline)) {
        return;
    }
    if (machine->is_killing) {
        abandon_processes(step);
    } else if (machine->looks_before_killing) {
        machine->is_timer_armed = false;
        machine->hold.is_kill_due = true;
        machine->hold.look_count++;
        agent_step_push_kind(step, AGENT_EFFECT_LOOK_AT_WORKERS);
    } else {
        agent_step_kill_workers(step);
    }
}

static void note_look_begun(struct agent_step *step) {
    step->machine->hold.look_count++;
}

static void note_look_over(struct agent_step *step) {
    struct agent_machine *machine = step->machine;
    if (machine->hold.look_count == 0 || --machine->hold.look_count > 0) {
        return;
    }
    if (machine->hold.is_kill_due) {
        agent_step_kill_workers(step);
    } else if (machine->hold.signal != 0) {
        agent_step_signal_workers(step, machine->hold.signal);
    }
}

/* Signals to the agent. */

/* A doubted failure is a failure of this node, although it may not be one of the job. */
static void finish_for_signal(struct agent_step *step) {
    bool has_failed = step->machine->phase == AGENT_DOUBTING;
    step->machine->received_signal = step->event->signal;
    agent_step_announce(step, AGENT_EFFECT_ANNOUNCE_LEAVE);
    agent_step_finish(step, has_failed ? AGENT_OUTCOME_FAILED : AGENT_OUTCOME_SIGNALLED);
}

static void stop_for_signal(struct agent_step *step) {
    step->machine->received_signal = step->event->signal;
    agent_step_announce(step, AGENT_EFFECT_ANNOUNCE_LEAVE);
    agent_step_begin_stop(step, AGENT_STOP_SIGNAL, step->event->signal);
}

/* A failure that came before the signal stays the outcome; otherwise its report would be lost. */
static void leave_for_signal(struct agent_step *step) {
    struct agent_machine *machine = step->machine;
    if (machine->stop_reason == AGENT_STOP_FAILURE ||
        machine->stop_reason == AGENT_STOP_PEER_FAILURE) {
        return;
    }
    bool is_doubted = machine->stop_reason == AGENT_STOP_DOUBTED_FAILURE;
    machine->stop_reason = is_doubted ? AGENT_STOP_FAILURE : AGENT_STOP_SIGNAL;
    agent_step_announce(step, AGENT_EFFECT_ANNOUNCE_LEAVE);
}

/* The agent forwards the first signal to the workers and keeps the deadline of the stop under way.
 * It does not send a signal that the workers have got already, for example because another node was
 * told to end by it. A second signal means that the user does not want to wait, so the workers are
 * killed. */
static void obey_signal_while_stopping(struct agent_step *step) {
    struct agent_machine *machine = step->machine;
    bool is_first = machine->received_signal == 0;
    if (is_first) {
        machine->received_signal = step->event->signal;
        leave_for_signal(step);
    }
    if (machine->is_killing || (is_first && machine->hold.is_kill_due)) {
        return;
    }
    if (is_first && step->event->signal != machine->stop_signal) {
        agent_step_signal_workers(step, step->event->signal);
    } else if (!is_first) {
        agent_step_kill_workers(step);
    }
}

/* Other nodes. */

static void finish_well(struct agent_step *step) {
    agent_step_announce(step, AGENT_EFFECT_ANNOUNCE_SUCCESS);
    agent_step_finish(step, AGENT_OUTCOME_SUCCEEDED);
}

/* The other nodes took too long in the exit barrier. This node's workers have succeeded, so it ends
 * with success. */
static void finish_alone(struct agent_step *step) {
    agent_step_announce(step, AGENT_EFFECT_ANNOUNCE_LEAVE);
    agent_step_finish(step, AGENT_OUTCOME_SUCCEEDED);
}

/* The job has ended. This node's workers have succeeded, or it never ran any, so it ends with
 * success. */
static void finish_unneeded(struct agent_step *step) {
    agent_step_finish(step, AGENT_OUTCOME_SUCCEEDED);
}

static void finish_for_peer(struct agent_step *step) {
    agent_step_finish(step, AGENT_OUTCOME_PEER_FAILED);
}

/* Goes to the attempt that another node asks for. False when the attempt is not new, or when this
 * node allows fewer restarts. */
static bool follow_peer(struct agent_step *step) {
    return step->event->attempt > agent_machine_attempt(step->machine) &&
           restart_policy_advance_to(
               &step->machine->restarts, step->event->attempt, step->event->now);
}

static void follow_peer_or_fail(struct agent_step *step) {
    if (step->event->attempt > agent_machine_attempt(step->machine) && !follow_peer(step)) {
        agent_step_announce(step, AGENT_EFFECT_ANNOUNCE_FAILURE);
        agent_step_finish(step, AGENT_OUTCOME_PEER_FAILED);
    }
}

static void stop_for_peer_restart(struct agent_step *step) {
    if (step->event->attempt <= agent_machine_attempt(step->machine)) {
        return;
    }
    enum agent_stop_reason reason = AGENT_STOP_RESTART;
    if (!follow_peer(step)) {
        reason = AGENT_STOP_PEER_FAILURE;
        agent_step_announce(step, AGENT_EFFECT_ANNOUNCE_FAILURE);
    }
    agent_step_begin_stop(step, reason, SIGNAL_NUMBER_TERMINATE);
}

/* This node's workers are done, but the job restarts. */
static void restart_instead(struct agent_step *step) {
    if (step->machine->stop_reason == AGENT_STOP_CLEAN_UP && follow_peer(step)) {
        step->machine->stop_reason = AGENT_STOP_RESTART;
    }
}

static void rejoin_for_peer(struct agent_step *step) {
    if (follow_peer(step)) {
        join(step);
    } else {
        agent_step_announce(step, AGENT_EFFECT_ANNOUNCE_FAILURE);
        agent_step_finish(step, AGENT_OUTCOME_PEER_FAILED);
    }
}

/* A signal that ended another node is usually meant for the whole job, and may never reach this
 * node. So the workers here get it too. */
static int signal_for_workers(const struct agent_step *step) {
    return step->event->signal != 0 ? step->event->signal : SIGNAL_NUMBER_TERMINATE;
}

static void stop_for_peer_failure(struct agent_step *step) {
    agent_step_begin_stop(step, AGENT_STOP_PEER_FAILURE, signal_for_workers(step));
}

/* The failure of another node does not change a success of this node's workers. The exit barrier
 * then tells that the job has failed. */
static void fail_for_peer_instead(struct agent_step *step) {
    if (step->machine->stop_reason == AGENT_STOP_RESTART) {
        step->machine->stop_reason = AGENT_STOP_PEER_FAILURE;
    }
    believe_failure(step);
}

/* The doubted failure stands: it is this node's own, and not a consequence of a lost node. */
static void believe_failure(struct agent_step *step) {
    if (step->machine->stop_reason == AGENT_STOP_DOUBTED_FAILURE) {
        step->machine->stop_reason = AGENT_STOP_FAILURE;
    }
}

static void fail_after_doubt(struct agent_step *step) {
    agent_step_finish(step, AGENT_OUTCOME_FAILED);
}

/* New rounds. They are no failure, so they cost no restart and are not announced. */

static void stop_for_new_round(struct agent_step *step) {
    agent_step_begin_stop(step, AGENT_STOP_RESTART, signal_for_workers(step));
}

/* This node's workers are done, or their failure was the consequence of a lost node. They run again
 * in the new round. */
static void restart_for_new_round(struct agent_step *step) {
    if (step->machine->stop_reason == AGENT_STOP_CLEAN_UP ||
        step->machine->stop_reason == AGENT_STOP_DOUBTED_FAILURE) {
        step->machine->stop_reason = AGENT_STOP_RESTART;
    }
}

/* Transcript. */

static void describe_instant(struct instant instant, struct text *out) {
    int64_t milliseconds = instant.nanoseconds / 1000000;
    text_append_format(out, "%" PRId64 ".%03" PRId64, milliseconds / 1000, milliseconds % 1000);
}

static void describe_exit(struct process_exit exit, struct text *out) {
    text_append_format(out, " %s=%d", exit.is_signal ? "signal" : "code", exit.value);
    if (exit.has_dumped_core) {
        text_append(out, " core");
    }
}

static void describe_signal(int signal_or_none, struct text *out) {
    if (signal_or_none != 0) {
        text_append_format(out, " signal=%d", signal_or_none);
    }
}

static const char *const event_names[AGENT_EVENT_COUNT] = {
    [AGENT_EVENT_START] = "start",
    [AGENT_EVENT_JOINED] = "joined",
    [AGENT_EVENT_JOIN_FAILED] = "join_failed",
    [AGENT_EVENT_WORKERS_STARTED] = "workers_started",
    [AGENT_EVENT_START_FAILED] = "start_failed",
    [AGENT_EVENT_WORKER_ENDING] = "worker_ending",
    [AGENT_EVENT_WORKER_EXITED] = "worker_exited",
    [AGENT_EVENT_WORKER_STUCK] = "worker_stuck",
    [AGENT_EVENT_ALL_GONE] = "all_gone",
    [AGENT_EVENT_LOOK_BEGUN] = "look_begun",
    [AGENT_EVENT_LOOK_OVER] = "look_over",
    [AGENT_EVENT_TIMER_FIRED] = "timer_fired",
    [AGENT_EVENT_SIGNAL_RECEIVED] = "signal_received",
    [AGENT_EVENT_BARRIER_PASSED] = "barrier_passed",
    [AGENT_EVENT_BARRIER_FAILED] = "barrier_failed",
    [AGENT_EVENT_PEER_RESTART] = "peer_restart",
    [AGENT_EVENT_PEER_FAILED] = "peer_failed",
    [AGENT_EVENT_FAILURE_STANDS] = "failure_stands",
    [AGENT_EVENT_ROUND_OVER] = "round_over",
    [AGENT_EVENT_JOB_OVER] = "job_over",
    [AGENT_EVENT_CHECK_PASSED] = "check_passed",
    [AGENT_EVENT_CHECK_FAILED] = "check_failed",
    [AGENT_EVENT_EXCLUDED] = "excluded",
    [AGENT_EVENT_STEPPED] = "stepped",
    [AGENT_EVENT_CANNOT_GO_ON] = "cannot_go_on",
};

void agent_event_describe(const struct agent_event *event, struct text *out) {
    text_append(out, event_names[event->kind]);
    switch (event->kind) {
    case AGENT_EVENT_JOINED:
        text_append_format(out, " ticket=%" PRId64 " restarts=%d nodes=%d", event->joined.ticket,
            event->joined.restarts, event->joined.node_count);
        break;
    case AGENT_EVENT_JOIN_FAILED:
        text_append_format(out, " ticket=%" PRId64, event->ticket);
        break;
    case AGENT_EVENT_START_FAILED:
        text_append_format(
            out, " rank=%d %s", event->start_failed.local_rank, event->start_failed.message);
        break;
    case AGENT_EVENT_WORKER_ENDING:
    case AGENT_EVENT_WORKER_EXITED:
        text_append_format(out, " rank=%d", event->worker_exited.local_rank);
        describe_exit(event->worker_exited.exit, out);
        break;
    case AGENT_EVENT_WORKER_STUCK:
        text_append_format(out, " rank=%d seconds=%.3f", event->worker_stuck.local_rank,
            duration_seconds(event->worker_stuck.stuck));
        break;
    case AGENT_EVENT_SIGNAL_RECEIVED:
        text_append_format(out, " %d", event->signal);
        break;
    case AGENT_EVENT_PEER_FAILED:
        describe_signal(event->signal, out);
        break;
    case AGENT_EVENT_ROUND_OVER:
        describe_signal(event->signal, out);
        if (event->is_counted) {
            text_append_format(out, " restarts=%d", event->restarts);
        }
        break;
    case AGENT_EVENT_PEER_RESTART:
        text_append_format(out, " attempt=%d", event->attempt);
        break;
    case AGENT_EVENT_STEPPED:
        text_append(out, event->is_new ? " new" : "");
        break;
    case AGENT_EVENT_START:
    case AGENT_EVENT_WORKERS_STARTED:
    case AGENT_EVENT_ALL_GONE:
    case AGENT_EVENT_LOOK_BEGUN:
    case AGENT_EVENT_LOOK_OVER:
    case AGENT_EVENT_TIMER_FIRED:
    case AGENT_EVENT_BARRIER_PASSED:
    case AGENT_EVENT_BARRIER_FAILED:
    case AGENT_EVENT_FAILURE_STANDS:
    case AGENT_EVENT_JOB_OVER:
    case AGENT_EVENT_CHECK_PASSED:
    case AGENT_EVENT_CHECK_FAILED:
    case AGENT_EVENT_EXCLUDED:
    case AGENT_EVENT_CANNOT_GO_ON:
    case AGENT_EVENT_COUNT:
        break;
    }
}

static const char *const effect_names[AGENT_EFFECT_COUNT] = {
    [AGENT_EFFECT_JOIN] = "join",
    [AGENT_EFFECT_START_WORKERS] = "start_workers",
    [AGENT_EFFECT_SIGNAL_WORKERS] = "signal_workers",
    [AGENT_EFFECT_LOOK_AT_WORKERS] = "look_at_workers",
    [AGENT_EFFECT_KILL_WORKERS] = "kill_workers",
    [AGENT_EFFECT_CHECK_NODE] = "check_node",
    [AGENT_EFFECT_ARM_TIMER] = "arm_timer",
    [AGENT_EFFECT_DISARM_TIMER] = "disarm_timer",
    [AGENT_EFFECT_ENTER_BARRIER] = "enter_barrier",
    [AGENT_EFFECT_ANNOUNCE_RESTART] = "announce_restart",
    [AGENT_EFFECT_DOUBT_FAILURE] = "doubt_failure",
    [AGENT_EFFECT_ANNOUNCE_FAILURE] = "announce_failure",
    [AGENT_EFFECT_ANNOUNCE_LEAVE] = "announce_leave",
    [AGENT_EFFECT_ANNOUNCE_SUCCESS] = "announce_success",
    [AGENT_EFFECT_FINISH] = "finish",
};

static void describe_outcome(const struct agent_outcome *outcome, struct text *out) {
    static const char *const names[] = {
        [AGENT_OUTCOME_SUCCEEDED] = "succeeded",
        [AGENT_OUTCOME_FAILED] = "failed",
        [AGENT_OUTCOME_PEER_FAILED] = "peer_failed",
        [AGENT_OUTCOME_JOIN_FAILED] = "join_failed",
        [AGENT_OUTCOME_SIGNALLED] = "signalled",
        [AGENT_OUTCOME_UNFIT] = "unfit",
        [AGENT_OUTCOME_EXCLUDED] = "excluded",
    };
    text_append_format(out, " %s", names[outcome->kind]);
    if (outcome->kind == AGENT_OUTCOME_SIGNALLED) {
        text_append_format(out, "=%d", outcome->signal);
    }
    if (outcome->has_abandoned_processes) {
        text_append(out, " abandoned");
    }
}

void agent_effect_describe(const struct agent_effect *effect, struct text *out) {
    text_append(out, effect_names[effect->kind]);
    switch (effect->kind) {
    case AGENT_EFFECT_JOIN:
        text_append_format(
            out, " ticket=%" PRId64 " attempt=%d", effect->join.ticket, effect->join.attempt);
        break;
    case AGENT_EFFECT_START_WORKERS:
    case AGENT_EFFECT_ENTER_BARRIER:
    case AGENT_EFFECT_ANNOUNCE_RESTART:
        text_append_format(out, " attempt=%d", effect->attempt);
        break;
    case AGENT_EFFECT_SIGNAL_WORKERS:
        text_append_format(out, " %d%s", effect->signal, effect->is_relayed ? " relayed" : "");
        break;
    case AGENT_EFFECT_ANNOUNCE_LEAVE:
        describe_signal(effect->signal, out);
        break;
    case AGENT_EFFECT_ARM_TIMER:
        text_append(out, " at=");
        describe_instant(effect->deadline, out);
        break;
    case AGENT_EFFECT_FINISH:
        describe_outcome(&effect->outcome, out);
        break;
    case AGENT_EFFECT_LOOK_AT_WORKERS:
    case AGENT_EFFECT_KILL_WORKERS:
    case AGENT_EFFECT_CHECK_NODE:
    case AGENT_EFFECT_DISARM_TIMER:
    case AGENT_EFFECT_DOUBT_FAILURE:
    case AGENT_EFFECT_ANNOUNCE_FAILURE:
    case AGENT_EFFECT_ANNOUNCE_SUCCESS:
    case AGENT_EFFECT_COUNT:
        break;
    }
}

const char *agent_phase_name(enum agent_phase phase) {
    static const char *const names[AGENT_PHASE_COUNT] = {
        [AGENT_IDLE] = "idle",
        [AGENT_HELD] = "held",
        [AGENT_JOINING] = "joining",
        [AGENT_STARTING] = "starting",
        [AGENT_RUNNING] = "running",
        [AGENT_STOPPING] = "stopping",
        [AGENT_LEAVING] = "leaving",
        [AGENT_DOUBTING] = "doubting",
        [AGENT_DONE] = "done",
    };
    return names[phase];
}
