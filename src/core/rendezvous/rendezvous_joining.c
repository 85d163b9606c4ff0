/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous/rendezvous_joining.h"

#include <stdio.h>

#include "core/rendezvous/rendezvous_decision.h"
#include "core/rendezvous/rendezvous_regroup.h"
#include "core/rendezvous/rendezvous_renewal.h"

static bool fail_late(struct rendezvous_step *step) {
    const struct rendezvous_machine *machine = step->machine;
    char reason[RENDEZVOUS_MESSAGE_SIZE];
    snprintf(reason, sizeof reason,
        "no world came together within the join timeout of %g s: round %lld has %zu of at least "
        "%d nodes",
        duration_seconds(machine->settings.join_timeout), (long long)machine->view.seen.round,
        machine->patience.size_when_late, machine->settings.minimum_nodes);
    rendezvous_fail(step, reason);
    return true;
}

/* Where many nodes may come, one that adds itself to an open round does not wake the watchers. They
 * have nothing to do until the round is complete, and of many nodes that come at once each would
 * wake all earlier ones. Few nodes see who is there, so that each can say whom it waits for. */
static bool concerns_no_watcher(const struct rendezvous_settings *settings,
    const struct rendezvous_state *draft, enum rendezvous_action action) {
    return action == RENDEZVOUS_ADD_TO_PARTICIPANTS && !draft->is_complete &&
           settings->maximum_nodes > RENDEZVOUS_DELEGATES_ABOVE_NODES;
}

static bool write_action(
    struct rendezvous_step *step, enum rendezvous_action action, bool is_late) {
    const struct rendezvous_machine *machine = step->machine;
    const struct rendezvous_settings *settings = &machine->settings;
    struct rendezvous_state *draft = rendezvous_draft_begin(step);
    rendezvous_apply(draft, settings, &machine->view.me, action, step->event->wall_now);
    if (draft->wanted > 0 && !rendezvous_state_has_foreign_participant(draft)) {
        /* The last call is torchrun's rule; this round waits for `wanted` nodes instead. */
        draft->has_deadline = false;
    }
    (void)rendezvous_regroup_settle(draft, settings, is_late);
    rendezvous_regroup_park(draft, settings);
    if (action == RENDEZVOUS_REMOVE_FROM_PARTICIPANTS &&
        rendezvous_failure_wants_restart(&machine->failure)) {
        draft->restarts++;
        rendezvous_regroup_explain(draft, machine->failure.reason);
    }
    return rendezvous_draft_write(step, concerns_no_watcher(settings, draft, action));
}

static bool take_action(struct rendezvous_step *step, enum rendezvous_action action, bool is_late) {
    switch (action) {
    case RENDEZVOUS_ADD_TO_PARTICIPANTS:
    case RENDEZVOUS_ADD_TO_WAIT_LIST:
    case RENDEZVOUS_ADD_TO_REDUNDANCY_LIST:
    case RENDEZVOUS_REMOVE_FROM_PARTICIPANTS:
    case RENDEZVOUS_REMOVE_FROM_WAIT_LIST:
    case RENDEZVOUS_REMOVE_FROM_REDUNDANCY_LIST:
    case RENDEZVOUS_MARK_COMPLETE:
        return write_action(step, action, is_late);
    case RENDEZVOUS_ERROR_TIMEOUT:
        return fail_late(step);
    case RENDEZVOUS_KEEP_ALIVE: /* the evaluation writes heartbeats itself */
    case RENDEZVOUS_MARK_CLOSED:
    case RENDEZVOUS_SYNC:
    case RENDEZVOUS_ERROR_CLOSED:
    case RENDEZVOUS_FINISH:
    case RENDEZVOUS_GRACEFUL_EXIT:
        break;
    }
    return false;
}

/* Whether this node makes its standby workers ready before it joins. */
static bool is_held_back(struct rendezvous_step *step) {
    struct rendezvous_warming *warming = &step->machine->warming;
    bool begins;
    bool holds = rendezvous_warming_holds(warming, &step->machine->view, step->event->now, &begins);
    if (begins) {
        rendezvous_step_push(step, (struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_WARM,
                                       .deadline = warming->end.at});
    }
    return holds;
}

bool rendezvous_join(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    if (is_held_back(step)) {
        return false;
    }
    const struct rendezvous_settings *settings = &machine->settings;
    const struct rendezvous_state *seen = &machine->view.seen;
    struct rendezvous_patience *patience = &machine->patience;
    struct instant now = step->event->now;
    struct rendezvous_context context = {
        .node = &machine->view.me,
        .state = seen,
        .settings = settings,
        .is_last_call_over =
            rendezvous_patience_is_last_call_over(patience, seen, now, settings->last_call_timeout),
        .is_late = rendezvous_patience_is_late(patience, rendezvous_state_participants(seen), now),
    };
    context.is_too_late = rendezvous_patience_is_too_late(patience, now);
    struct rendezvous_state *draft = rendezvous_draft_begin(step);
    if (rendezvous_view_is_participant(&machine->view) &&
        rendezvous_regroup_settle(draft, settings, context.is_late)) {
        return rendezvous_draft_write(step, false);
    }
    return take_action(step, rendezvous_decide_join(&context), context.is_late);
}

/* No further round follows: some workers are done, so nobody is let in, and nobody goes on without
 * a node that is lost. */
static bool is_last_round(const struct rendezvous_machine *machine) {
    return machine->view.seen.is_draining && !rendezvous_settings_heed_losses(&machine->settings);
}

/* By torchrun's rules a spare waits without a deadline, but a node on the wait list only until the
 * join timeout. */
bool rendezvous_wait_beside(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    if (rendezvous_view_self(&machine->view)->is_redundant ||
        (rendezvous_regroup_is_possible(&machine->view.seen) && !is_last_round(machine))) {
        rendezvous_patience_prolong(
            &machine->patience, step->event->now, machine->settings.join_timeout);
    }
    return rendezvous_join(step);
}

static bool leave_ended_round(struct rendezvous_step *step) {
    const struct rendezvous_machine *machine = step->machine;
    const struct rendezvous_state *seen = &machine->view.seen;
    if (rendezvous_regroup_is_possible(seen)) {
        char reason[RENDEZVOUS_MESSAGE_SIZE];
        rendezvous_place_name_missing(
            &machine->place, seen, machine->place.ended_round, reason, sizeof reason);
        return rendezvous_renew(step, (struct rendezvous_regroup){.reason = reason});
    }
    struct rendezvous_context context = {
        .node = &machine->view.me, .state = seen, .settings = &machine->settings};
    return take_action(step, rendezvous_decide_exit(&context), false);
}

/* Whether participants have left the complete round, and those that are left are no world. Where
 * losses are not heeded, a lost node is only taken out of the round. */
static bool has_lost_participants(const struct rendezvous_machine *machine) {
    const struct rendezvous_state *seen = &machine->view.seen;
    bool is_too_small =
        rendezvous_state_participants(seen) < (size_t)machine->settings.minimum_nodes;
    return !rendezvous_state_is_whole(seen) ||
           (is_too_small && rendezvous_regroup_is_possible(seen));
}

/* The others of this round do not exchange their ranks, and this node was not told its own: it has
 * given up its host just when the round was ranked. The next round is not ranked. */
static bool lacks_ranks(const struct rendezvous_step *step) {
    return rendezvous_state_is_ranked(&step->machine->view.seen) &&
           rendezvous_step_ranks(step).world_size == 0 && !rendezvous_step_is_held(step);
}

bool rendezvous_go_with_round(struct rendezvous_step *step) {
    struct rendezvous_place *place = &step->machine->place;
    const struct rendezvous_state *seen = &step->machine->view.seen;
    if (place->is_in_world) {
        return false;
    }
    /* After a new connection a node may be in the round that it has left, or in an earlier one. */
    bool is_old = seen->base == place->world.base && seen->round <= place->world.round;
    if (seen->round != place->ended_round &&
        (is_old || has_lost_participants(step->machine) || lacks_ranks(step))) {
        rendezvous_place_give_up(place, seen->round);
    }
    if (seen->round == place->ended_round) {
        return leave_ended_round(step);
    }
    if (place->is_join_asked) {
        rendezvous_tell_world(step);
    }
    return false;
}
