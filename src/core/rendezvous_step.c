/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous_step.h"

#include <assert.h>
#include <stdio.h>

/* Moments. */

bool moment_has_come(const struct moment *moment, struct instant now) {
    return moment->is_set && !instant_is_before(now, moment->at);
}

void moment_set(struct moment *moment, struct instant at) {
    *moment = (struct moment){.is_set = true, .at = at};
}

void moment_set_after(
    struct moment *moment, const struct rendezvous_step *step, struct duration duration) {
    moment_set(moment, instant_after(step->event->now, duration));
}

void moment_clear(struct moment *moment) {
    moment->is_set = false;
}

/* Effects. */

void rendezvous_step_push(struct rendezvous_step *step, struct rendezvous_effect effect) {
    assert(step->effects->count < RENDEZVOUS_EFFECTS_MAXIMUM);
    step->effects->items[step->effects->count++] = effect;
}

void rendezvous_step_push_kind(struct rendezvous_step *step, enum rendezvous_effect_kind kind) {
    rendezvous_step_push(step, (struct rendezvous_effect){.kind = kind});
}

void rendezvous_step_present(struct rendezvous_step *step) {
    rendezvous_step_push(step, (struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_PRESENT,
                                   .present = {step->machine->me, step->machine->is_finished}});
}

/* The record. */

bool rendezvous_is_connected(const struct rendezvous_machine *machine) {
    return machine->link >= RENDEZVOUS_LINK_READY;
}

const struct rendezvous_node *rendezvous_self(const struct rendezvous_machine *machine) {
    return rendezvous_state_find(&machine->seen, &machine->me);
}

bool rendezvous_is_participant(const struct rendezvous_machine *machine) {
    return rendezvous_state_is_participant(&machine->seen, &machine->me);
}

bool rendezvous_is_first(const struct rendezvous_machine *machine) {
    const struct rendezvous_node *self = rendezvous_self(machine);
    if (self == NULL || !self->is_participant || !machine->seen.is_complete) {
        return false;
    }
    for (size_t i = 0; i < machine->seen.count; i++) {
        const struct rendezvous_node *other = &machine->seen.nodes[i];
        if (other->is_participant && other->rank < self->rank) {
            return false;
        }
    }
    return true;
}

bool rendezvous_is_watchkeeper(const struct rendezvous_machine *machine) {
    return machine->has_presence ? machine->is_host : rendezvous_is_first(machine);
}

bool rendezvous_is_somebody_done(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    if (!machine->is_finished_count_known || machine->finished_round != machine->seen.round) {
        rendezvous_step_push(
            step, (struct rendezvous_effect){
                      .kind = RENDEZVOUS_EFFECT_COUNT_FINISHED, .round = machine->seen.round});
        machine->is_finished_count_known = true;
        machine->finished_round = machine->seen.round;
        machine->finished_count = 1; /* until it is answered */
    }
    return machine->finished_count > 0;
}

struct rendezvous_state *rendezvous_draft_begin(struct rendezvous_machine *machine) {
    rendezvous_state_copy(&machine->seen, &machine->draft);
    return &machine->draft;
}

bool rendezvous_draft_write(struct rendezvous_step *step, bool is_quiet) {
    struct rendezvous_machine *machine = step->machine;
    machine->link = RENDEZVOUS_LINK_WRITING;
    machine->write_began = step->event->now;
    machine->is_writing_heartbeats = false;
    rendezvous_step_push(step, (struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_WRITE,
                                   .write = {&machine->draft, is_quiet}});
    return true;
}

/* What the agent is told. */

static void tell(
    struct rendezvous_step *step, enum rendezvous_effect_kind kind, const char *reason) {
    struct rendezvous_machine *machine = step->machine;
    if (reason != machine->message) {
        snprintf(machine->message, sizeof machine->message, "%s", reason);
    }
    rendezvous_step_push(step,
        (struct rendezvous_effect){.kind = kind, .told = {machine->message, machine->was_parked}});
}

void rendezvous_need_world(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    if (!machine->join_deadline.is_set) {
        moment_set_after(&machine->join_deadline, step, machine->settings.join_timeout);
        moment_clear(&machine->rollback_deadline);
    }
}

/* What the host knows of finished workers ends with their round. */
static void forget_finish(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    if (machine->is_finished) {
        machine->is_finished = false;
        if (rendezvous_is_connected(machine)) {
            rendezvous_step_present(step);
        }
    }
}

void rendezvous_leave_world(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    machine->ended_round = machine->world_round;
    machine->world_round = RENDEZVOUS_NO_ROUND;
    machine->is_doubting = false;
    moment_clear(&machine->doubt_deadline);
    rendezvous_need_world(step);
    forget_finish(step);
}

void rendezvous_end_world(struct rendezvous_step *step, const char *reason) {
    if (step->machine->world_round != RENDEZVOUS_NO_ROUND) {
        rendezvous_leave_world(step);
        tell(step, RENDEZVOUS_EFFECT_ROUND_OVER, reason);
    }
}

void rendezvous_end_part(struct rendezvous_step *step, enum rendezvous_goal goal) {
    struct rendezvous_machine *machine = step->machine;
    machine->is_doubting = false;
    moment_clear(&machine->doubt_deadline);
    if (machine->goal != RENDEZVOUS_GOAL_TAKE_PART || !rendezvous_is_connected(machine)) {
        rendezvous_settle(step);
        return;
    }
    machine->goal = goal;
    moment_set_after(&machine->settle_deadline, step, machine->settings.close_timeout);
}

void rendezvous_close_part(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    const char *reason = machine->seen.has_failed ? machine->seen.reason : "";
    machine->goal = RENDEZVOUS_GOAL_OVER;
    machine->end = RENDEZVOUS_EFFECT_CLOSED;
    tell(step, RENDEZVOUS_EFFECT_CLOSED, reason);
}

void rendezvous_fail(struct rendezvous_step *step, const char *reason) {
    step->machine->goal = RENDEZVOUS_GOAL_OVER;
    step->machine->end = RENDEZVOUS_EFFECT_FAILED;
    tell(step, RENDEZVOUS_EFFECT_FAILED, reason);
}

void rendezvous_settle(struct rendezvous_step *step) {
    step->machine->goal = RENDEZVOUS_GOAL_OVER;
    step->machine->end = RENDEZVOUS_EFFECT_SETTLED;
    rendezvous_step_push_kind(step, RENDEZVOUS_EFFECT_SETTLED);
}

void rendezvous_repeat_end(struct rendezvous_step *step) {
    tell(step, step->machine->end, step->machine->message);
}
