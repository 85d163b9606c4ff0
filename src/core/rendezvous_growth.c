/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous_growth.h"

#include "core/rendezvous_losses.h"

/* Those who come at the same time are admitted at the same time. */
#define GATHER_MILLISECONDS 10
/* A node that came and went within this makes the next one wait, longer each time. */
#define SHORT_STAY_SECONDS 10
#define LONG_STAY_SECONDS 60
#define PENALTY_MAXIMUM_SECONDS 60

void rendezvous_growth_look(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    const struct rendezvous_state *seen = &machine->seen;
    if (!seen->is_complete || seen->round == machine->round_of_began) {
        return;
    }
    size_t size = rendezvous_state_participants(seen);
    double lived = duration_seconds(instant_until(machine->round_began, step->event->now));
    double penalty = duration_seconds(machine->penalty);
    if (machine->has_grown && size < machine->size_of_began && lived < SHORT_STAY_SECONDS) {
        penalty = penalty < 1 ? 1 : penalty * 2;
        penalty = penalty > PENALTY_MAXIMUM_SECONDS ? PENALTY_MAXIMUM_SECONDS : penalty;
    } else if (lived >= LONG_STAY_SECONDS) {
        penalty = 0;
    }
    machine->penalty = duration_from_seconds(penalty);
    machine->has_grown =
        machine->round_of_began != RENDEZVOUS_NO_ROUND && size > machine->size_of_began;
    machine->round_began = step->event->now;
    machine->round_of_began = seen->round;
    machine->size_of_began = size;
}

static struct instant admission_time(const struct rendezvous_step *step) {
    const struct rendezvous_machine *machine = step->machine;
    struct instant gathered =
        instant_after(step->event->now, duration_from_milliseconds(GATHER_MILLISECONDS));
    struct instant allowed = instant_after(
        instant_after(machine->round_began, machine->settings.scale_up_interval), machine->penalty);
    return instant_is_before(allowed, gathered) ? gathered : allowed;
}

bool rendezvous_growth_admit(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    if (!rendezvous_is_first(machine) ||
        !rendezvous_regroup_would_admit(&machine->seen, &machine->settings)) {
        moment_clear(&machine->admission_at);
        return false;
    }
    if (!machine->admission_at.is_set) {
        moment_set(&machine->admission_at, admission_time(step));
    }
    if (!moment_has_come(&machine->admission_at, step->event->now)) {
        return false;
    }
    moment_clear(&machine->admission_at);
    return rendezvous_losses_regroup(
        step, (struct rendezvous_regroup){.reason = "a node has joined"});
}
