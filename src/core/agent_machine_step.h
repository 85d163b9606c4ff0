/* SPDX-License-Identifier: BSD-3-Clause */
/* What the handlers of agent_machine do things with: the effects of one step. Nobody else looks
 * inside. */
#ifndef MUSTER_CORE_AGENT_MACHINE_STEP_H
#define MUSTER_CORE_AGENT_MACHINE_STEP_H

#include <assert.h>

#include "core/agent_machine.h"

/* What a handler sees of one step. */
struct step {
    struct agent_machine *machine;
    const struct agent_event *event;
    struct agent_effects *effects;
};

static inline void push(struct step *step, struct agent_effect effect) {
    assert(step->effects->count < AGENT_EFFECTS_MAXIMUM);
    step->effects->items[step->effects->count++] = effect;
}

static inline void push_kind(struct step *step, enum agent_effect_kind kind) {
    push(step, (struct agent_effect){.kind = kind});
}

static inline void push_attempt(struct step *step, enum agent_effect_kind kind) {
    push(
        step, (struct agent_effect){.kind = kind, .attempt = agent_machine_attempt(step->machine)});
}

static inline void arm_timer(struct step *step, struct instant deadline) {
    step->machine->is_timer_armed = true;
    step->machine->deadline = deadline;
    push(step, (struct agent_effect){.kind = AGENT_EFFECT_ARM_TIMER, .deadline = deadline});
}

static inline void disarm_timer(struct step *step) {
    if (step->machine->is_timer_armed) {
        step->machine->is_timer_armed = false;
        push_kind(step, AGENT_EFFECT_DISARM_TIMER);
    }
}

/* Other nodes, if there may be any and this one has made itself known to them. */
static inline void announce(struct step *step, enum agent_effect_kind kind) {
    if (step->machine->has_peers && step->machine->ticket > 0) {
        push_kind(step, kind);
    }
}

static inline void finish(struct step *step, enum agent_outcome_kind kind) {
    struct agent_outcome outcome = {
        .kind = kind,
        .signal = step->machine->received_signal,
        .has_abandoned_processes = step->machine->has_abandoned_processes,
    };
    disarm_timer(step);
    step->machine->phase = AGENT_DONE;
    push(step, (struct agent_effect){.kind = AGENT_EFFECT_FINISH, .outcome = outcome});
}

/* What is being looked at would end with it, and nobody know what it was doing. */
static inline void signal_workers(struct step *step, int signal) {
    struct agent_machine *machine = step->machine;
    if (machine->hold.look_count > 0) {
        machine->hold.signal = signal;
        return;
    }
    machine->hold.signal = 0;
    machine->stop_signal = signal;
    push(step, (struct agent_effect){.kind = AGENT_EFFECT_SIGNAL_WORKERS, .signal = signal});
    if (!machine->is_timer_armed) {
        arm_timer(step, instant_after(step->event->now, machine->shutdown_timeout));
    }
}

static inline void begin_stop(struct step *step, enum agent_stop_reason reason, int signal) {
    step->machine->phase = AGENT_STOPPING;
    step->machine->stop_reason = reason;
    signal_workers(step, signal);
}

static inline void kill_workers(struct step *step) {
    struct duration patience = duration_from_milliseconds(AGENT_KILL_PATIENCE_MILLISECONDS);
    step->machine->is_killing = true;
    step->machine->hold = (struct agent_hold){.look_count = step->machine->hold.look_count};
    push_kind(step, AGENT_EFFECT_KILL_WORKERS);
    arm_timer(step, instant_after(step->event->now, patience));
}

#endif
