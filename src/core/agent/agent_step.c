/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/agent/agent_step.h"

#include <assert.h>

void agent_step_push(struct agent_step *step, struct agent_effect effect) {
    assert(step->effects->count < AGENT_EFFECTS_MAXIMUM);
    step->effects->items[step->effects->count++] = effect;
}

void agent_step_push_kind(struct agent_step *step, enum agent_effect_kind kind) {
    agent_step_push(step, (struct agent_effect){.kind = kind});
}

void agent_step_push_attempt(struct agent_step *step, enum agent_effect_kind kind) {
    agent_step_push(
        step, (struct agent_effect){.kind = kind, .attempt = agent_machine_attempt(step->machine)});
}

void agent_step_arm_timer(struct agent_step *step, struct instant deadline) {
    step->machine->is_timer_armed = true;
    step->machine->deadline = deadline;
    agent_step_push(
        step, (struct agent_effect){.kind = AGENT_EFFECT_ARM_TIMER, .deadline = deadline});
}

void agent_step_disarm_timer(struct agent_step *step) {
    if (step->machine->is_timer_armed) {
        step->machine->is_timer_armed = false;
        agent_step_push_kind(step, AGENT_EFFECT_DISARM_TIMER);
    }
}

void agent_step_announce(struct agent_step *step, enum agent_effect_kind kind) {
    if (step->machine->has_peers && step->machine->ticket > 0) {
        agent_step_push(
            step, (struct agent_effect){.kind = kind, .signal = step->machine->received_signal});
    }
}

void agent_step_finish(struct agent_step *step, enum agent_outcome_kind kind) {
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

void agent_step_signal_workers(struct agent_step *step, int signal) {
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

void agent_step_begin_stop(struct agent_step *step, enum agent_stop_reason reason, int signal) {
    step->machine->phase = AGENT_STOPPING;
    step->machine->stop_reason = reason;
    agent_step_signal_workers(step, signal);
}

void agent_step_kill_workers(struct agent_step *step) {
    struct duration patience = duration_from_milliseconds(AGENT_KILL_PATIENCE_MILLISECONDS);
    step->machine->is_killing = true;
    step->machine->hold = (struct agent_hold){.look_count = step->machine->hold.look_count};
    agent_step_push_kind(step, AGENT_EFFECT_KILL_WORKERS);
    agent_step_arm_timer(step, instant_after(step->event->now, patience));
}

/* This agent cannot go on. Other nodes may, as after a signal to this one. */

void agent_step_finish_unable(struct agent_step *step) {
    agent_step_announce(step, AGENT_EFFECT_ANNOUNCE_LEAVE);
    agent_step_finish(step, AGENT_OUTCOME_FAILED);
}

void agent_step_stop_unable(struct agent_step *step) {
    step->machine->looks_before_killing = false;
    agent_step_announce(step, AGENT_EFFECT_ANNOUNCE_LEAVE);
    agent_step_begin_stop(step, AGENT_STOP_FAILURE, SIGNAL_NUMBER_TERMINATE);
}

/* Workers that have succeeded stay so, and the exit barrier follows. */
void agent_step_fail_unable_instead(struct agent_step *step) {
    struct agent_machine *machine = step->machine;
    machine->looks_before_killing = false;
    if (machine->stop_reason == AGENT_STOP_RESTART ||
        machine->stop_reason == AGENT_STOP_DOUBTED_FAILURE) {
        machine->stop_reason = AGENT_STOP_FAILURE;
        agent_step_announce(step, AGENT_EFFECT_ANNOUNCE_LEAVE);
    }
}
