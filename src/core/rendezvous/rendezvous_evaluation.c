/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous/rendezvous_evaluation.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "core/rendezvous/rendezvous_decision.h"
#include "core/rendezvous/rendezvous_serving.h"
#include "core/telling/round_reason.h"

/* Whether the last restart may have been a consequence of the loss that is known now. */
static bool is_refunded(const struct rendezvous_step *step) {
    const struct rendezvous_machine *machine = step->machine;
    return rendezvous_failure_may_be_consequence(&machine->failure, &machine->view.seen,
        step->event->now,
        rendezvous_failure_patience(&machine->settings, machine->connection.has_presence));
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
    switch (failure_detector_judge(&machine->detector, &machine->view, node, &machine->settings,
        machine->connection.has_presence)) {
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
    rendezvous_regroup_name_cause(
        losses->first_participant, ROUND_REASON_GONE, reason, sizeof reason);
    return rendezvous_renew(
        step, (struct rendezvous_regroup){.is_refunded = is_refunded(step), .reason = reason});
}

/* Removes the nodes that are gone from the record, and begins the next round if one of them was a
 * participant. */
static bool rendezvous_take_out_losses(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    struct loss_list losses = {0};
    failure_detector_forget(&machine->detector, &machine->view.seen);
    find_losses(step, false, &losses);
    bool has_written = take_out(step, &losses);
    free(losses.identities);
    return has_written;
}

/* This node leaves. */

/* Whether the workers of this node are done in the round seen. */
static bool is_done_here(const struct rendezvous_machine *machine) {
    return machine->finish.is_here &&
           machine->view.seen.round == rendezvous_place_round(&machine->place);
}

/* A node whose workers are done in the round seen leaves without a write. It stays a participant,
 * so that the other nodes run on and begin no new round. */
static bool has_nothing_to_leave(const struct rendezvous_machine *machine) {
    const struct rendezvous_view *view = &machine->view;
    return rendezvous_view_self(view) == NULL ||
           (is_done_here(machine) && rendezvous_regroup_is_possible(&view->seen));
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
    rendezvous_regroup_name_cause(
        leaving->first_participant, ROUND_REASON_LEFT, reason, sizeof reason);
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

static void rendezvous_leave_lists(struct rendezvous_step *step) {
    leave(step, false);
}

/* This node leaves a complete round, which the other participants continue without it; or it leaves
 * the list on which it is. When it has nothing to leave, its part is settled. */
static void rendezvous_leave_round(struct rendezvous_step *step) {
    leave(step, true);
}

/* Rounds because workers failed here, or because a node waits. */

/* Begins the next round if workers failed here and no other node has begun it. */
static bool rendezvous_restart(struct rendezvous_step *step) {
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
        step, (struct rendezvous_regroup){.is_charged = true,
                  .culprit = &machine->view.me,
                  .is_culprit_needed = machine->connection.is_host && !machine->has_succession,
                  .reason = machine->failure.reason});
}

/* One node admits the nodes that wait, when it is time: a host that serves presence knows who of
 * them is there. The best time is before workers have begun to run in the round. */
static bool rendezvous_admit(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    bool is_wanted = rendezvous_step_acts_for_all(machine) &&
                     rendezvous_regroup_would_admit(&machine->view.seen, &machine->settings);
    return rendezvous_growth_is_due(&machine->growth, is_wanted, step->event->now,
               machine->settings.scale_up_interval) &&
           rendezvous_renew(
               step, (struct rendezvous_regroup){.reason = "a node " ROUND_REASON_JOINED});
}

/* How a node gets from one world into the next by way of the record: it joins by torchrun's rules
 * (rendezvous_decision), waits beside a round that runs, enters a round that is complete, and
 * leaves a round that is over. This module sees all parts of a rendezvous machine.
 * rendezvous_evaluation calls it. */

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

/* This node is not in a complete round. It takes the next step towards one. */
static bool rendezvous_join(struct rendezvous_step *step) {
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
        (rendezvous_regroup_settle(draft, settings, context.is_late) ||
            (!rendezvous_state_has_foreign_participant(draft) &&
                rendezvous_call_last(draft, settings, step->event->wall_now)))) {
        return rendezvous_draft_write(step, false);
    }
    return take_action(step, rendezvous_decide_join(&context), context.is_late);
}

/* No further round follows: some workers are done, so nobody is let in, and nobody goes on without
 * a node that is lost. */
static bool is_last_round(const struct rendezvous_machine *machine) {
    return machine->view.seen.is_draining && !rendezvous_settings_heed_losses(&machine->settings);
}

/* The same for a node on the wait list or the redundancy list. It has no join deadline as long as
 * Muster's nodes run. */
/* By torchrun's rules a spare waits without a deadline, but a node on the wait list only until the
 * join timeout. */
static bool rendezvous_wait_beside(struct rendezvous_step *step) {
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

/* This node is in a complete round. It enters the round when its agent asks for a world, or leaves
 * a round that is over. */
static bool rendezvous_go_with_round(struct rendezvous_step *step) {
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

/* Evaluation. */

enum rendezvous_situation rendezvous_situation(const struct rendezvous_view *view) {
    static const struct rendezvous_node nobody;
    const struct rendezvous_node *self = rendezvous_view_self(view);
    self = self != NULL ? self : &nobody;
    if (view->seen.is_closed) {
        return RENDEZVOUS_SITUATION_CLOSED;
    }
    if (self->is_participant && view->seen.is_complete) {
        return RENDEZVOUS_SITUATION_COMPLETE;
    }
    if (self->is_redundant) {
        return RENDEZVOUS_SITUATION_SPARE;
    }
    if (self->is_participant) {
        return RENDEZVOUS_SITUATION_OPEN;
    }
    return self->is_waiting ? RENDEZVOUS_SITUATION_WAITING : RENDEZVOUS_SITUATION_UNKNOWN;
}

/* The end of this node's part. */

/* The record is closed. If this node doubts a failure of its workers, and the record tells of no
 * failure, the failure stands, since no other node will report it. If the record was closed without
 * a failure, the workers may finish, and this node gives signs of life as long as they run. */
static void end_with_job(struct rendezvous_step *step) {
    const struct rendezvous_machine *machine = step->machine;
    bool has_failed = machine->view.seen.has_failed;
    if (rendezvous_failure_is_doubted(&machine->failure) && !has_failed) {
        rendezvous_let_failure_stand(step);
        rendezvous_settle(step);
    } else if (machine->place.is_in_world && !has_failed) {
        rendezvous_tell_closing(step);
    } else {
        rendezvous_close_part(step);
    }
}

/* Whoever has passed the exit barrier of a round knows that this one is over, and nothing of a
 * later one, which others may have begun without this node, or with it. They end that one
 * themselves. So this node only leaves. A failure ends the job, in whatever round it is by now, and
 * so does who closes the record without a barrier. */
static void turn_to_leaving(struct rendezvous_machine *machine) {
    struct rendezvous_purpose *purpose = &machine->purpose;
    bool has_succeeded = purpose->message[0] == '\0' && purpose->signal == 0;
    if (purpose->goal == RENDEZVOUS_GOAL_CLOSE && has_succeeded && machine->finish.is_here &&
        !machine->view.seen.is_closed && !is_done_here(machine)) {
        purpose->goal = RENDEZVOUS_GOAL_LEAVE;
    }
}

static void close_record(struct rendezvous_step *step) {
    const struct rendezvous_machine *machine = step->machine;
    struct rendezvous_state *draft = rendezvous_draft_begin(step);
    rendezvous_apply(draft, &machine->settings, &machine->view.me, RENDEZVOUS_MARK_CLOSED,
        step->event->wall_now);
    draft->has_failed = machine->purpose.message[0] != '\0';
    rendezvous_regroup_explain(draft, machine->purpose.message);
    draft->signal = machine->purpose.signal;
    (void)rendezvous_draft_write(step, false);
}

/* The world in which this node runs. */

/* torchrun's nodes restart their workers when a node waits, and Muster's nodes beside them do the
 * same. They do not before the workers run: until then torchrun's nodes do not look for waiting
 * nodes, and would wait in vain for what this node had to tell them. They do not when a node has
 * finished its workers either: that node is in the exit barrier, where torchrun's nodes no longer
 * look for waiting nodes. */
static bool heeds_waiting(struct rendezvous_step *step) {
    const struct rendezvous_machine *machine = step->machine;
    const struct rendezvous_state *seen = &machine->view.seen;
    return rendezvous_state_has_foreign_participant(seen) && rendezvous_state_waiting(seen) > 0 &&
           rendezvous_state_participants(seen) < (size_t)machine->settings.maximum_nodes &&
           machine->place.is_placed && !seen->is_draining && !machine->finish.is_here &&
           !rendezvous_is_any_node_done(step);
}

/* The host that held the world for this node does so no more, and has not told its ranks. */
static bool will_not_be_released(const struct rendezvous_step *step) {
    return step->machine->place.is_held && !rendezvous_step_is_held(step) &&
           rendezvous_step_ranks(step).world_size == 0;
}

static void check_world(struct rendezvous_step *step, enum rendezvous_situation situation) {
    const struct rendezvous_machine *machine = step->machine;
    const struct rendezvous_place *place = &machine->place;
    const struct rendezvous_state *seen = &machine->view.seen;
    if (!place->is_in_world) {
        return;
    }
    char reason[RENDEZVOUS_MESSAGE_SIZE];
    if (situation != RENDEZVOUS_SITUATION_COMPLETE || seen->round != place->world.round) {
        rendezvous_place_explain_end(place, &machine->view, reason, sizeof reason);
        rendezvous_end_world(step, reason);
    } else if (rendezvous_state_participants(seen) < rendezvous_state_participants(&place->world) &&
               rendezvous_settings_heed_losses(&machine->settings)) {
        rendezvous_place_name_missing(place, seen, seen->round, reason, sizeof reason);
        rendezvous_end_world(step, reason);
    } else if (heeds_waiting(step)) {
        rendezvous_end_world(step, "a node waits to join");
    } else if (will_not_be_released(step)) {
        rendezvous_end_world(step, "the host of the job's store does not begin the round");
    }
}

/* Doubted failures. */

/* A node that leaves does not answer the roll call: an answer says that the node stays in the
 * round. */
static void answer_roll(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    const struct rendezvous_state *seen = &machine->view.seen;
    if (machine->purpose.goal != RENDEZVOUS_GOAL_LEAVE &&
        machine->purpose.goal != RENDEZVOUS_GOAL_OVER &&
        rendezvous_view_is_participant(&machine->view) &&
        rendezvous_failure_answer_roll(&machine->failure, seen)) {
        rendezvous_step_push(
            step, (struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_ANSWER_ROLL,
                      .roll = {seen->round, (int)rendezvous_view_self(&machine->view)->rank}});
    }
}

static bool pursue_doubt(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    struct rendezvous_failure *failure = &machine->failure;
    const struct rendezvous_state *seen = &machine->view.seen;
    if (!rendezvous_failure_is_doubted(failure)) {
        return false;
    }
    if (rendezvous_failure_stands(failure, step->event->now)) {
        rendezvous_let_failure_stand(step);
        close_record(step);
        return true;
    }
    if (!seen->is_doubted) {
        rendezvous_draft_begin(step)->is_doubted = true;
        return rendezvous_draft_write(step, false);
    }
    if (rendezvous_failure_call_roll(failure)) {
        rendezvous_step_push(
            step, (struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_CALL_ROLL,
                      .roll = {seen->round, (int)rendezvous_state_participants(seen)}});
    }
    return false;
}

/* Marks and heartbeats. */

static bool park_the_waiting(struct rendezvous_step *step) {
    const struct rendezvous_machine *machine = step->machine;
    if (!rendezvous_regroup_would_park(&machine->view.seen, &machine->settings)) {
        return false;
    }
    rendezvous_regroup_park(rendezvous_draft_begin(step), &machine->settings);
    return rendezvous_draft_write(step, false);
}

/* Of a node that is there, the next host of the store learns from itself that its workers are done.
 * It cannot learn so of the host before it, and of nodes that were gone by then. So the host notes
 * these. */
static bool must_be_noted(
    const struct rendezvous_machine *machine, const struct rendezvous_node *node) {
    if (!machine->has_succession || !machine->connection.is_host || !node->is_participant ||
        node->is_done) {
        return false;
    }
    return node_identity_equals(&node->identity, &machine->view.me)
               ? is_done_here(machine)
               : failure_detector_judge(&machine->detector, &machine->view, node,
                     &machine->settings,
                     machine->connection.has_presence) == RENDEZVOUS_LOSS_FINISHED;
}

/* A node that waits needs to know: where no further round follows, its patience has an end. */
static bool mark_the_done(struct rendezvous_step *step) {
    const struct rendezvous_machine *machine = step->machine;
    const struct rendezvous_state *seen = &machine->view.seen;
    bool drains = is_done_here(machine) && !seen->is_draining;
    struct rendezvous_state *draft = drains ? rendezvous_draft_begin(step) : NULL;
    for (size_t i = 0; i < seen->count; i++) {
        if (must_be_noted(machine, &seen->nodes[i])) {
            draft = draft == NULL ? rendezvous_draft_begin(step) : draft;
            draft->nodes[i].is_done = true;
        }
    }
    if (draft == NULL) {
        return false;
    }
    draft->is_draining = true;
    return rendezvous_draft_write(step, !drains || rendezvous_state_waiting(seen) == 0);
}

/* The workers of this world would be ended for a round that nobody could commit. Whoever admits
 * nodes needs to know, and those who wait. */
static bool freeze(struct rendezvous_step *step) {
    const struct rendezvous_machine *machine = step->machine;
    if (!machine->has_succession || !machine->connection.is_host ||
        machine->view.seen.is_frozen == machine->is_register_stuck) {
        return false;
    }
    rendezvous_draft_begin(step)->is_frozen = machine->is_register_stuck;
    return rendezvous_draft_write(step, false);
}

/* torchrun's nodes judge every node by its heartbeat in the record. So the host of the store writes
 * the heartbeats of all nodes whose presence it knows. Where no host serves presence, a node writes
 * its own heartbeat, and so does one that others are to take for torchrun's. */
static bool writes_heartbeat_of(
    const struct rendezvous_machine *machine, const struct node_identity *identity) {
    bool is_own = node_identity_equals(identity, &machine->view.me);
    if (is_own && !node_identity_is_muster(identity)) {
        return true;
    }
    if (!machine->connection.has_presence) {
        return is_own;
    }
    return machine->connection.is_host && node_identity_is_muster(identity) &&
           !failure_detector_has_noted(&machine->detector, identity);
}

struct duration rendezvous_heartbeat_interval(const struct rendezvous_machine *machine) {
    return machine->connection.has_presence && machine->connection.is_host
               ? rendezvous_settings_beat(&machine->settings)
               : machine->settings.keep_alive_interval;
}

static bool keep_alive(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    struct duration interval = rendezvous_heartbeat_interval(machine);
    /* Those that are written less often are written ahead. */
    int64_t lead = interval.nanoseconds - machine->settings.keep_alive_interval.nanoseconds;
    if (!record_connection_is_heartbeat_due(&machine->connection, step->event->now)) {
        return false;
    }
    struct rendezvous_state *draft = rendezvous_draft_begin(step);
    bool has_changed = false;
    for (size_t i = 0; i < draft->count; i++) {
        struct rendezvous_node *node = &draft->nodes[i];
        if (writes_heartbeat_of(machine, &node->identity)) {
            node->has_heartbeat = true;
            node->heartbeat = (struct wall_time){step->event->wall_now.nanoseconds + lead};
            has_changed = true;
        }
    }
    if (has_changed) {
        return rendezvous_draft_write_heartbeats(step);
    }
    record_connection_put_off_heartbeat(&machine->connection, step->event->now, interval);
    return false;
}

/* The table. */

/* Each evaluation stops at the first of these functions that has written. Functions before it may
 * have told the agent something. */

static void run(struct rendezvous_step *step) {
    (void)(rendezvous_take_out_losses(step) || pursue_doubt(step) || rendezvous_restart(step) ||
           freeze(step) || rendezvous_admit(step) || rendezvous_go_with_round(step) ||
           park_the_waiting(step) || mark_the_done(step) || rendezvous_serve(step) ||
           keep_alive(step));
}

static void join(struct rendezvous_step *step) {
    (void)(rendezvous_take_out_losses(step) || rendezvous_restart(step) || freeze(step) ||
           rendezvous_admit(step) || rendezvous_join(step) || park_the_waiting(step) ||
           rendezvous_serve(step) || keep_alive(step));
}

static void wait(struct rendezvous_step *step) {
    (void)(rendezvous_take_out_losses(step) || rendezvous_restart(step) || freeze(step) ||
           rendezvous_admit(step) || rendezvous_wait_beside(step) || park_the_waiting(step) ||
           rendezvous_serve(step) || keep_alive(step));
}

/* A node ignores the record before its agent has asked to join, and when its part is over. */
static void idle(struct rendezvous_step *step) {
    (void)step;
}

/* Its part is over. Others may need it. */
static void serve(struct rendezvous_step *step) {
    if (rendezvous_serving_outlasts(step->machine)) {
        (void)(rendezvous_take_out_losses(step) || freeze(step) || rendezvous_admit(step) ||
               rendezvous_serve(step));
    }
}

static void (*const handlers[RENDEZVOUS_SITUATION_COUNT][RENDEZVOUS_GOAL_COUNT])(
    struct rendezvous_step *step) = {
    /* goals: NONE, TAKE_PART, CLOSE, LEAVE, OVER */
    [RENDEZVOUS_SITUATION_CLOSED] = {idle, end_with_job, rendezvous_settle, rendezvous_settle,
        idle},
    [RENDEZVOUS_SITUATION_UNKNOWN] = {idle, join, close_record, rendezvous_leave_lists, serve},
    [RENDEZVOUS_SITUATION_OPEN] = {idle, join, close_record, rendezvous_leave_lists, serve},
    [RENDEZVOUS_SITUATION_COMPLETE] = {idle, run, close_record, rendezvous_leave_round, serve},
    [RENDEZVOUS_SITUATION_WAITING] = {idle, wait, close_record, rendezvous_leave_lists, serve},
    [RENDEZVOUS_SITUATION_SPARE] = {idle, wait, close_record, rendezvous_leave_lists, serve},
};

static void take_note(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    const struct rendezvous_state *seen = &machine->view.seen;
    const struct record_connection *connection = &machine->connection;
    struct instant now = step->event->now;
    failure_detector_look(&machine->detector, &machine->view, now,
        machine->settings.keep_alive_interval, connection->has_presence, connection->is_host);
    rendezvous_place_look(&machine->place, &machine->view);
    rendezvous_growth_look(&machine->growth, seen, now);
    restart_history_note(&machine->restarts, seen->restarts, &seen->ages, now);
    rendezvous_failure_look(&machine->failure, seen, now);
}

/* The store has lost the record: somebody has deleted or emptied it, or has written an earlier one
 * again. A node that holds it writes it again, so that the round goes on. A node that closes the
 * record or leaves has something else to write, which comes to the same. */
static bool write_again(struct rendezvous_step *step) {
    const struct rendezvous_machine *machine = step->machine;
    if (!machine->view.is_lost || machine->purpose.goal != RENDEZVOUS_GOAL_TAKE_PART) {
        return false;
    }
    (void)rendezvous_draft_begin(step);
    return record_connection_is_pausing(&machine->connection) ||
           rendezvous_draft_write(step, false);
}

/* The round that was begun because of the failure here goes on without this node. */
static bool is_excluded(const struct rendezvous_machine *machine) {
    const struct rendezvous_state *seen = &machine->view.seen;
    return machine->settings.exclude_after > 0 &&
           machine->purpose.goal == RENDEZVOUS_GOAL_TAKE_PART &&
           rendezvous_failure_wants_restart(&machine->failure) && !seen->is_closed &&
           seen->round > machine->place.ended_round &&
           rendezvous_view_self(&machine->view) == NULL &&
           rendezvous_regroup_is_because(seen, machine->failure.reason);
}

void rendezvous_evaluate(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    turn_to_leaving(machine);
    if (is_excluded(machine)) {
        rendezvous_step_push_kind(step, RENDEZVOUS_EFFECT_EXCLUDED);
        rendezvous_end_part(step, RENDEZVOUS_GOAL_LEAVE);
    }
    enum rendezvous_goal goal = machine->purpose.goal;
    enum rendezvous_situation situation = rendezvous_situation(&machine->view);
    if (write_again(step)) {
        return;
    }
    take_note(step);
    if (situation != RENDEZVOUS_SITUATION_CLOSED) {
        if (goal == RENDEZVOUS_GOAL_TAKE_PART) {
            check_world(step, situation);
        }
        answer_roll(step);
        if (record_connection_is_pausing(&machine->connection)) {
            return;
        }
    }
    handlers[situation][goal](step);
}
