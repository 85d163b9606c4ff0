/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/succession/succession_step.h"

#include <assert.h>
#include <stdio.h>

#include "base/text.h"

/* Effects. */

void succession_push(struct succession_step *step, struct succession_effect effect) {
    assert(step->effects->count < SUCCESSION_EFFECTS_MAXIMUM);
    step->effects->items[step->effects->count++] = effect;
}

void succession_push_kind(struct succession_step *step, enum succession_effect_kind kind) {
    succession_push(step, (struct succession_effect){.kind = kind});
}

void succession_read(struct succession_step *step) {
    if (step->machine->request == SUCCESSION_REQUEST_NONE) {
        step->machine->request = SUCCESSION_REQUEST_READ;
        step->machine->asked_at = step->event->now;
        succession_push_kind(step, SUCCESSION_EFFECT_READ);
    }
}

/* A dial is given up after silence_timeout, so that the host comes to be suspected. */
void succession_dial(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    if (!instant_is_before(step->event->now, machine->deadline)) {
        succession_give_up(step);
    } else if (machine->is_seeking && !machine->is_connected) {
        machine->is_dialing = true;
        struct instant end = instant_after(step->event->now, machine->settings.silence_timeout);
        succession_push(step, (struct succession_effect){.kind = SUCCESSION_EFFECT_DIAL,
                                  .dial = {machine->state == SUCCESSION_HOST,
                                      instant_earlier(end, machine->deadline)}});
    }
}

void succession_append(
    struct succession_step *step, bool is_claim, const struct rendezvous_state *record) {
    struct succession_machine *machine = step->machine;
    machine->request = SUCCESSION_REQUEST_APPEND;
    machine->asked_at = step->event->now;
    machine->is_claim = is_claim;
    machine->is_unresolved = false;
    rendezvous_state_copy(record, &machine->appended);
    succession_push(step, (struct succession_effect){.kind = SUCCESSION_EFFECT_APPEND,
                              .append = {.is_claim = is_claim,
                                  .is_named = is_claim && machine->is_named,
                                  .number = machine->entry.number + 1,
                                  .term = machine->entry.term + (is_claim ? 1 : 0),
                                  .record = &machine->appended}});
}

void succession_retry_later(struct succession_step *step) {
    moment_set_after(&step->machine->retry_at, step->event->now,
        duration_from_milliseconds(SUCCESSION_RETRY_MILLISECONDS));
}

static void tell_lost(struct succession_step *step) {
    step->machine->is_connected = false;
    step->machine->is_named = false;
    succession_push(step, (struct succession_effect){.kind = SUCCESSION_EFFECT_TELL_LOST,
                              .keeps_hosting = step->machine->state == SUCCESSION_HOST});
}

/* The store of another term is not the job's any more. SEEK follows. */
void succession_leave_connection(struct succession_step *step) {
    if (step->machine->is_connected) {
        tell_lost(step);
    }
}

/* Workers of a node that is not connected end when the others may have gone on without it. */
void succession_fence(struct succession_step *step, const char *reason) {
    struct succession_machine *machine = step->machine;
    if (!machine->is_fenced && machine->was_connected && !machine->is_connected) {
        machine->is_fenced = true;
        succession_push(
            step, (struct succession_effect){.kind = SUCCESSION_EFFECT_FENCED, .reason = reason});
    }
}

/* Who is who. */

const struct rendezvous_node *succession_find_self(
    const struct succession_machine *machine, const struct rendezvous_state *record) {
    for (size_t i = 0; i < record->count; i++) {
        if (node_identity_is_same_process(
                &record->nodes[i].identity, &machine->settings.identity)) {
            return &record->nodes[i];
        }
    }
    return NULL;
}

/* What the host has committed since this node has read, this node has seen. A node that delegates
 * sees no record, and knows it when it has read. */
static const struct rendezvous_state *latest_world(const struct succession_machine *machine) {
    const struct rendezvous_state *seen = &machine->seen;
    const struct rendezvous_state *read = &machine->record;
    return seen->count > 0 && (seen->round > read->round || read->count == 0) ? seen : read;
}

int succession_turn(const struct succession_machine *machine) {
    const struct rendezvous_state *world = latest_world(machine);
    const struct rendezvous_node *self = succession_find_self(machine, world);
    int before = 0;
    for (size_t i = 0; i < world->count && before < SUCCESSION_TURNS_MAXIMUM; i++) {
        const struct rendezvous_node *other = &world->nodes[i];
        bool is_earlier = self == NULL || !self->is_participant || other->rank < self->rank;
        if (other->is_participant && is_earlier && other != self &&
            !node_identity_is_same_process(&other->identity, &machine->entry.host)) {
            before++;
        }
    }
    return before;
}

void succession_forget_suspicion(struct succession_machine *machine) {
    succession_silence_end(&machine->silence);
    machine->suspicion = (struct succession_suspicion){.kind = SUCCESSION_SUSPICION_NONE};
    if (machine->state == SUCCESSION_SUSPECT) {
        machine->state = SUCCESSION_FOLLOW;
    }
}

void succession_give_up(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    if (machine->is_seeking) {
        machine->is_seeking = false;
        if (machine->reason[0] == '\0') {
            snprintf(machine->reason, sizeof machine->reason, "no node hosts the job's store");
        }
        succession_push(step, (struct succession_effect){
                                  .kind = SUCCESSION_EFFECT_GAVE_UP, .reason = machine->reason});
    }
}

void succession_claim(struct succession_step *step) {
    step->machine->state = SUCCESSION_CLAIM;
    succession_append(step, true, &step->machine->record);
}

/* Only few nodes do so: more would delay the one that claims. */
static void watch(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    bool is_early = succession_turn(machine) < SUCCESSION_TURNS_MAXIMUM;
    if (is_early && machine->suspicion.watched != machine->entry.number) {
        machine->suspicion.watched = machine->entry.number;
        succession_push(step, (struct succession_effect){.kind = SUCCESSION_EFFECT_WATCH,
                                  .number = machine->entry.number});
    }
}

/* While other nodes have their turns, this one looks after each whether one of them has claimed. */
static void take_turn(struct succession_step *step) {
    struct succession_suspicion *suspicion = &step->machine->suspicion;
    if (!suspicion->is_turn) {
        suspicion->is_turn = true;
        suspicion->turns_before = succession_turn(step->machine);
    }
    if (!suspicion->turn_at.is_set && suspicion->turns_before == 0) {
        succession_claim(step);
        return;
    }
    if (!suspicion->turn_at.is_set) {
        suspicion->turns_before--;
        moment_set_after(&suspicion->turn_at, step->event->now,
            duration_from_milliseconds(SUCCESSION_TURN_MILLISECONDS));
    }
    watch(step);
}

void succession_claim_in_turn(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    const struct succession_suspicion *suspicion = &machine->suspicion;
    if (suspicion->kind == SUCCESSION_SUSPICION_REFUSED) {
        take_turn(step);
    } else if (suspicion->is_turn || machine->is_named) {
        succession_claim(step);
    } else if (!machine->is_dialing) {
        succession_dial(step);
    }
}

/* Time. */

struct instant succession_fence_time(const struct succession_machine *machine) {
    return instant_after(machine->heard_at, machine->settings.fence_timeout);
}

/* Also for what has come: the event of this step need not be the timer's, which acts on it. */
static void wake(const struct moment *moment, struct moment *next) {
    if (moment->is_set && (!next->is_set || instant_is_before(moment->at, next->at))) {
        *next = *moment;
    }
}

void succession_arm_timer(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    struct moment next = {0};
    wake(&machine->suspicion.turn_at, &next);
    struct moment look_at = succession_silence_next(&machine->silence);
    wake(&look_at, &next);
    wake(&machine->renew_at, &next);
    wake(&machine->retry_at, &next);
    wake(&machine->count_at, &next);
    wake(&machine->handover.quiet_at, &next);
    wake(&machine->handover.until, &next);
    if (machine->state == SUCCESSION_HOST && machine->is_uncommitted &&
        instant_is_before(step->event->now, machine->patient_until.at)) {
        wake(&machine->patient_until, &next);
    }
    if (machine->is_seeking && !machine->is_connected) {
        struct moment deadline = {true, machine->deadline};
        wake(&deadline, &next);
    }
    if (machine->was_connected && !machine->is_connected && !machine->is_fenced) {
        struct moment fence_at = {true, succession_fence_time(machine)};
        wake(&fence_at, &next);
    }
    if (next.is_set) {
        succession_push(step,
            (struct succession_effect){.kind = SUCCESSION_EFFECT_ARM_TIMER, .deadline = next.at});
    }
}
