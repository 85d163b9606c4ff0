/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/succession/succession_hosting.h"

#include "base/text.h"
#include "core/succession/succession_handover.h"

void succession_tell_register(struct succession_step *step, bool is_stuck) {
    if (step->machine->is_stuck != is_stuck) {
        step->machine->is_stuck = is_stuck;
        succession_push(step, (struct succession_effect){
                                  .kind = SUCCESSION_EFFECT_TELL_REGISTER, .is_stuck = is_stuck});
    }
}

void succession_host(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    machine->is_renewing = false;
    succession_tell_register(step, false); /* its claim was taken */
    succession_forget_suspicion(machine);
    succession_leave_connection(step);
    machine->state = SUCCESSION_HOST;
    machine->is_uncommitted = false;
    succession_majority_clear(&machine->majority);
    moment_clear(&machine->patient_until);
    moment_set_after(&machine->renew_at, step->event->now,
        duration_from_milliseconds(SUCCESSION_RENEWAL_MILLISECONDS));
    succession_push(step, (struct succession_effect){.kind = SUCCESSION_EFFECT_HOST,
                              .host = {machine->entry.term, machine->formers, machine->former_count,
                                  &machine->record}});
    succession_dial(step);
}

void succession_end_hosting(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    machine->state = SUCCESSION_FOLLOW;
    machine->is_uncommitted = false;
    moment_clear(&machine->renew_at);
    succession_push_kind(step, SUCCESSION_EFFECT_END_HOSTING);
    succession_leave_connection(step);
}

static void forget_missing(struct succession_machine *machine, struct instant until) {
    succession_majority_forget(&machine->majority, &machine->record, until);
}

/* They have to find the host silent before they claim: by then half of this has passed. */
static struct duration patience_of(const struct succession_machine *machine) {
    return (struct duration){2 * machine->settings.fence_timeout.nanoseconds};
}

/* Those who are missing may be together, and this node alone: they are given time to claim. Who has
 * been missing for so long while this node held its term has had that time. */
static bool is_outnumbered(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    if (!machine->patient_until.is_set) {
        forget_missing(machine,
            (struct instant){step->event->now.nanoseconds - patience_of(machine).nanoseconds});
    }
    if (!succession_majority_is_missing(
            &machine->majority, &machine->record, &machine->settings.identity)) {
        moment_clear(&machine->patient_until);
        return false;
    }
    if (!machine->patient_until.is_set) {
        moment_set_after(&machine->patient_until, step->event->now, patience_of(machine));
    }
    return true;
}

static bool is_patient(struct succession_step *step) {
    return is_outnumbered(step) &&
           !moment_has_come(&step->machine->patient_until, step->event->now);
}

void succession_commit(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    if (machine->state == SUCCESSION_HOST && machine->is_uncommitted &&
        machine->request == SUCCESSION_REQUEST_NONE && !machine->is_unresolved &&
        !succession_has_handed_over(machine) && !is_patient(step)) {
        succession_append(step, false, &machine->seen);
    }
}

void succession_tell_committed(struct succession_step *step) {
    const struct rendezvous_state *record = &step->machine->record;
    if (step->machine->is_connected && record->is_complete) {
        succession_push(step, (struct succession_effect){.kind = SUCCESSION_EFFECT_TELL_COMMITTED,
                                  .round = record->round});
    }
}

void succession_take_commit_won(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    machine->former_count = 0;
    rendezvous_state_copy(&machine->appended, &machine->record);
    if (moment_has_come(&machine->patient_until, step->event->now)) {
        forget_missing(machine, step->event->now); /* nobody has claimed: they are dead */
    }
    machine->is_uncommitted =
        machine->is_uncommitted && succession_is_news(&machine->seen, &machine->record);
    succession_tell_committed(step);
    succession_commit(step);
}

static size_t count_done(const struct rendezvous_state *record) {
    size_t count = 0;
    for (size_t i = 0; i < record->count; i++) {
        count += record->nodes[i].is_done ? 1 : 0;
    }
    return count;
}

bool succession_is_news(const struct rendezvous_state *seen, const struct rendezvous_state *known) {
    return seen->round != known->round || seen->base != known->base ||
           seen->is_closed != known->is_closed || seen->is_complete != known->is_complete ||
           count_done(seen) != count_done(known);
}

void succession_take_seen(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    const struct rendezvous_state *record = step->event->record;
    bool is_whole = record->is_complete && rendezvous_state_is_whole(record);
    succession_majority_see(&machine->majority, record);
    machine->is_open = !is_whole && !record->is_closed;
    machine->is_uncommitted =
        (is_whole || record->is_closed) && succession_is_news(record, &machine->record);
    if (machine->is_uncommitted) {
        rendezvous_state_copy(record, &machine->seen);
    }
    succession_see_who_stays(step);
    succession_commit(step);
}

/* No network parts nodes of one machine: one that does not come is dead, or stands still. */
static bool is_on_own_machine(const struct succession_step *step) {
    return text_equals(step->event->silent.address, step->machine->settings.identity.address);
}

void succession_take_silent_node(struct succession_step *step) {
    if (step->machine->state == SUCCESSION_HOST && !is_on_own_machine(step)) {
        succession_majority_miss(&step->machine->majority, &step->event->silent, step->event->now);
        moment_set(&step->machine->count_at, step->event->now);
    }
}

void succession_count_missing(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    if (moment_has_come(&machine->count_at, step->event->now)) {
        moment_clear(&machine->count_at);
        if (machine->state == SUCCESSION_HOST) {
            (void)is_outnumbered(step);
        }
    }
}

/* A node that stood still may have been deposed meanwhile; so may one that is cut off, whose round
 * stays open. Any other finds out when it appends. */
static bool may_be_deposed(const struct succession_step *step) {
    const struct succession_machine *machine = step->machine;
    struct instant late = instant_after(
        machine->renew_at.at, duration_from_milliseconds(SUCCESSION_RENEWAL_MILLISECONDS));
    return machine->is_open || machine->is_renewing || instant_is_before(late, step->event->now) ||
           machine->renewal_count % SUCCESSION_RENEWALS_PER_READ == 0;
}

void succession_renew(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    if (machine->state != SUCCESSION_HOST || succession_has_handed_over(machine) ||
        !moment_has_come(&machine->renew_at, step->event->now)) {
        return;
    }
    bool is_held = !is_outnumbered(step);
    machine->renewal_count++;
    if (!is_held || may_be_deposed(step)) {
        succession_read(step); /* a renewal does not tell that the term is over */
    }
    moment_set_after(&machine->renew_at, step->event->now,
        duration_from_milliseconds(SUCCESSION_RENEWAL_MILLISECONDS));
    if (is_held) {
        succession_tell_register(step, machine->is_renewing);
        machine->is_renewing = true;
        succession_push(step, (struct succession_effect){
                                  .kind = SUCCESSION_EFFECT_RENEW, .term = machine->entry.term});
    }
}
