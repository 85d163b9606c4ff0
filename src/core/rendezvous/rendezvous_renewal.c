/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous/rendezvous_renewal.h"

#include <stdlib.h>

#include "base/memory.h"
#include "core/rendezvous/rendezvous_serving.h"

/* Whether the last restart may have been a consequence of the loss that is known now. */
static bool is_refunded(const struct rendezvous_step *step) {
    const struct rendezvous_machine *machine = step->machine;
    return rendezvous_failure_may_be_consequence(&machine->failure, &machine->view.seen,
        step->event->now,
        rendezvous_failure_patience(&machine->settings, machine->link.has_presence));
}

/* Nodes that are gone. */

struct loss_list {
    struct node_identity *identities;
    size_t count;
    size_t capacity;
    const struct node_identity *first_participant; /* points into the record; or NULL */
};

static bool is_lost(
    struct rendezvous_step *step, const struct rendezvous_node *node, bool with_finished) {
    const struct rendezvous_machine *machine = step->machine;
    switch (rendezvous_losses_judge(
        &machine->losses, &machine->view, node, &machine->settings, machine->link.has_presence)) {
    case RENDEZVOUS_LOSS_GONE:
        return true;
    case RENDEZVOUS_LOSS_FINISHED:
        return with_finished;
    case RENDEZVOUS_LOSS_SILENT:
        return !rendezvous_is_any_node_done(step);
    case RENDEZVOUS_LOSS_NONE:
        break;
    }
    return false;
}

static void find_losses(struct rendezvous_step *step, bool with_finished, struct loss_list *list) {
    const struct rendezvous_state *seen = &step->machine->view.seen;
    for (size_t i = 0; i < seen->count; i++) {
        const struct rendezvous_node *node = &seen->nodes[i];
        if (!is_lost(step, node, with_finished)) {
            continue;
        }
        list->identities = memory_reserve(
            list->identities, &list->capacity, list->count + 1, sizeof *list->identities);
        list->identities[list->count++] = node->identity;
        if (node->is_participant && list->first_participant == NULL) {
            list->first_participant = &node->identity;
        }
    }
}

bool rendezvous_renew(struct rendezvous_step *step, struct rendezvous_regroup how) {
    struct loss_list losses = {0};
    if (how.gone == NULL) {
        find_losses(step, true, &losses);
        how.gone = losses.identities;
        how.gone_count = losses.count;
    }
    rendezvous_regroup_apply(rendezvous_draft_begin(step), &step->machine->settings, &how);
    free(losses.identities);
    return rendezvous_draft_write(step, false);
}

static bool expel(struct rendezvous_step *step, const struct node_identity *gone, size_t count) {
    struct rendezvous_state *draft = rendezvous_draft_begin(step);
    if (rendezvous_state_take_out(draft, gone, count)) {
        rendezvous_state_settle(draft, &step->machine->settings);
    }
    return rendezvous_draft_write(step, false);
}

static bool take_out(struct rendezvous_step *step, const struct loss_list *losses) {
    const struct rendezvous_machine *machine = step->machine;
    if (losses->count == 0) {
        return false;
    }
    if (losses->first_participant == NULL || !rendezvous_settings_heed_losses(&machine->settings) ||
        !rendezvous_regroup_is_possible(&machine->view.seen)) {
        return expel(step, losses->identities, losses->count);
    }
    char reason[RENDEZVOUS_MESSAGE_SIZE];
    rendezvous_regroup_name_cause(losses->first_participant, "is gone", reason, sizeof reason);
    return rendezvous_renew(
        step, (struct rendezvous_regroup){.is_refunded = is_refunded(step), .reason = reason});
}

bool rendezvous_take_out_losses(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    struct loss_list losses = {0};
    rendezvous_losses_forget(&machine->losses, &machine->view.seen);
    find_losses(step, false, &losses);
    bool has_written = take_out(step, &losses);
    free(losses.identities);
    return has_written;
}

/* This node leaves. */

/* A node whose workers are done in the round seen leaves without a write. It stays a participant,
 * so that the other nodes run on and begin no new round. */
static bool has_nothing_to_leave(const struct rendezvous_machine *machine) {
    const struct rendezvous_view *view = &machine->view;
    return rendezvous_view_self(view) == NULL ||
           (machine->finish.is_here &&
               rendezvous_place_round(&machine->place) == view->seen.round &&
               rendezvous_regroup_is_possible(&view->seen));
}

bool rendezvous_let_leave(struct rendezvous_step *step, const struct rendezvous_leaving *leaving) {
    const struct rendezvous_machine *machine = step->machine;
    if (leaving->count == 0) {
        return false;
    }
    if (leaving->first_participant == NULL ||
        !rendezvous_settings_heed_losses(&machine->settings) ||
        !rendezvous_regroup_is_possible(&machine->view.seen)) {
        return expel(step, leaving->identities, leaving->count);
    }
    char reason[RENDEZVOUS_MESSAGE_SIZE];
    rendezvous_regroup_name_cause(leaving->first_participant, "has left", reason, sizeof reason);
    return rendezvous_renew(step, (struct rendezvous_regroup){.gone = leaving->identities,
                                      .gone_count = leaving->count,
                                      .is_refunded = is_refunded(step),
                                      .reason = reason,
                                      .signal = leaving->signal});
}

static void leave(struct rendezvous_step *step, bool is_of_round) {
    const struct rendezvous_machine *machine = step->machine;
    const struct node_identity *me = &machine->view.me;
    if (has_nothing_to_leave(machine)) {
        if (rendezvous_serving_holds_back(step)) {
            (void)(rendezvous_take_out_losses(step) || rendezvous_serve(step));
            return;
        }
        bool is_told = rendezvous_delegating_may_settle(&machine->delegating);
        if (is_told || rendezvous_view_self(&machine->view) != NULL) {
            rendezvous_settle(step);
        }
        return;
    }
    (void)rendezvous_let_leave(step, &(struct rendezvous_leaving){.identities = me,
                                         .count = 1,
                                         .first_participant = is_of_round ? me : NULL,
                                         .signal = machine->purpose.signal});
}

void rendezvous_leave_lists(struct rendezvous_step *step) {
    leave(step, false);
}

void rendezvous_leave_round(struct rendezvous_step *step) {
    leave(step, true);
}

/* Rounds because workers failed here, or because a node waits. */

bool rendezvous_restart(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    const struct rendezvous_state *seen = &machine->view.seen;
    if (!rendezvous_failure_wants_restart(&machine->failure)) {
        return false;
    }
    if (seen->round != machine->place.ended_round ||
        !rendezvous_view_is_participant(&machine->view)) {
        /* The next round has begun, or this node has left. */
        rendezvous_failure_end(&machine->failure);
        return false;
    }
    if (!rendezvous_regroup_is_possible(seen)) {
        return false; /* this node will leave the round, as torchrun's nodes do */
    }
    return rendezvous_renew(
        step, (struct rendezvous_regroup){.is_charged = true, .reason = machine->failure.reason});
}

bool rendezvous_admit(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    bool is_mine = !machine->delegating.is_on &&
                   (rendezvous_view_is_first(&machine->view) || rendezvous_serves_first(machine));
    bool is_wanted =
        is_mine && rendezvous_regroup_would_admit(&machine->view.seen, &machine->settings);
    return rendezvous_growth_is_due(&machine->growth, is_wanted, step->event->now,
               machine->settings.scale_up_interval) &&
           rendezvous_renew(step, (struct rendezvous_regroup){.reason = "a node has joined"});
}
