/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/succession/succession_handover.h"

/* The host. */

static bool comes_before(const struct rendezvous_node *node, const struct rendezvous_node *other) {
    return node->is_participant != other->is_participant
               ? node->is_participant
               : node->is_participant && node->rank < other->rank;
}

/* NULL: nobody stays. A node that leaves, too, is not in the record any more. */
static const struct rendezvous_node *find_successor(
    const struct succession_machine *machine, const struct rendezvous_state *record) {
    const struct rendezvous_node *first = NULL;
    for (size_t i = 0; i < record->count && !record->is_closed; i++) {
        const struct rendezvous_node *node = &record->nodes[i];
        bool stays = !node->is_done &&
                     !node_identity_is_same_process(&node->identity, &machine->settings.identity);
        if (stays && (first == NULL || comes_before(node, first))) {
            first = node;
        }
    }
    return first;
}

static void name(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    machine->handover.stage = SUCCESSION_HANDOVER_NAMED;
    machine->handover.has_named = true;
    moment_clear(&machine->renew_at);
    succession_push(step, (struct succession_effect){.kind = SUCCESSION_EFFECT_NAME,
                              .successor = machine->handover.successor});
}

static void dismiss(struct succession_step *step, bool has_successor) {
    struct succession_handover *handover = &step->machine->handover;
    handover->stage = SUCCESSION_HANDOVER_OVER;
    moment_clear(&handover->quiet_at);
    moment_clear(&handover->until);
    succession_push(step, (struct succession_effect){
                              .kind = SUCCESSION_EFFECT_DISMISS, .has_successor = has_successor});
}

static void wait_for_quiet(struct succession_step *step) {
    moment_set_after(&step->machine->handover.quiet_at, step->event->now,
        duration_from_milliseconds(SUCCESSION_QUIET_MILLISECONDS));
}

void succession_see_who_stays(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    if (machine->handover.stage != SUCCESSION_HANDOVER_SETTLING) {
        return;
    }
    const struct rendezvous_node *successor = find_successor(machine, step->event->record);
    if (successor == NULL) {
        dismiss(step, false);
    } else {
        machine->handover.successor = successor->identity;
        wait_for_quiet(step);
    }
}

void succession_take_leave(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    if (machine->state != SUCCESSION_HOST) {
        dismiss(step, false);
        return;
    }
    machine->handover.stage = SUCCESSION_HANDOVER_SETTLING;
    moment_set_after(&machine->handover.until, step->event->now,
        duration_from_milliseconds(SUCCESSION_HANDOVER_MILLISECONDS));
    succession_see_who_stays(step);
}

/* It hosts by now, or has died: either way the others find out. */
void succession_take_gone_node(struct succession_step *step) {
    const struct succession_handover *handover = &step->machine->handover;
    if (handover->stage == SUCCESSION_HANDOVER_NAMED &&
        node_identity_is_same_process(&handover->successor, &step->event->gone)) {
        dismiss(step, true);
    }
}

static bool is_settled(const struct succession_machine *machine) {
    return !machine->handover.quiet_at.is_set && machine->request == SUCCESSION_REQUEST_NONE &&
           !machine->is_unresolved && !machine->is_uncommitted;
}

/* A round that was committed just now begins. */
static void listen(struct succession_step *step) {
    struct succession_handover *handover = &step->machine->handover;
    if (step->event->kind == SUCCESSION_EVENT_WON) {
        wait_for_quiet(step);
    } else if (moment_has_come(&handover->quiet_at, step->event->now)) {
        moment_clear(&handover->quiet_at);
    }
}

void succession_hand_over(struct succession_step *step) {
    struct succession_machine *machine = step->machine;
    struct succession_handover *handover = &machine->handover;
    if (handover->stage == SUCCESSION_HANDOVER_NONE ||
        handover->stage == SUCCESSION_HANDOVER_OVER) {
        return;
    }
    if (machine->state != SUCCESSION_HOST || moment_has_come(&handover->until, step->event->now)) {
        dismiss(step, false);
    } else if (handover->stage == SUCCESSION_HANDOVER_SETTLING) {
        listen(step);
        if (is_settled(machine)) {
            name(step);
        }
    }
}

bool succession_has_handed_over(const struct succession_machine *machine) {
    return machine->handover.has_named;
}

/* The others. */

static bool follows(const struct succession_machine *machine) {
    return machine->state == SUCCESSION_FOLLOW && machine->is_connected;
}

/* What the host has committed meanwhile, this node may not know. */
void succession_take_named(struct succession_step *step) {
    if (follows(step->machine)) {
        step->machine->is_named = true;
        succession_read(step);
    }
}

void succession_take_moved(struct succession_step *step) {
    if (follows(step->machine)) {
        succession_read(step);
    }
}
