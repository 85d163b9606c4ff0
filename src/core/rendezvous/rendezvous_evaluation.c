/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous/rendezvous_evaluation.h"

#include "core/rendezvous/rendezvous_action.h"
#include "core/rendezvous/rendezvous_joining.h"
#include "core/rendezvous/rendezvous_regroup.h"
#include "core/rendezvous/rendezvous_renewal.h"
#include "core/rendezvous/rendezvous_serving.h"

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

/* Whether the workers of this node are done in the round seen. */
static bool is_done_here(const struct rendezvous_machine *machine) {
    return machine->finish.is_here &&
           machine->view.seen.round == rendezvous_place_round(&machine->place);
}

/* Of a node that is there, the next host of the store learns from itself that its workers are done.
 * It cannot learn so of the host before it, and of nodes that were gone by then. So the host notes
 * these. */
static bool must_be_noted(
    const struct rendezvous_machine *machine, const struct rendezvous_node *node) {
    if (!machine->has_succession || !machine->link.is_host || !node->is_participant ||
        node->is_done) {
        return false;
    }
    return node_identity_equals(&node->identity, &machine->view.me)
               ? is_done_here(machine)
               : rendezvous_losses_judge(&machine->losses, &machine->view, node, &machine->settings,
                     machine->link.has_presence) == RENDEZVOUS_LOSS_FINISHED;
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
    if (!machine->has_succession || !machine->link.is_host ||
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
    if (!machine->link.has_presence) {
        return is_own;
    }
    return machine->link.is_host && node_identity_is_muster(identity) &&
           !rendezvous_losses_include(&machine->losses, identity);
}

struct duration rendezvous_heartbeat_interval(const struct rendezvous_machine *machine) {
    return machine->link.has_presence && machine->link.is_host
               ? rendezvous_settings_beat(&machine->settings)
               : machine->settings.keep_alive_interval;
}

static bool keep_alive(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    struct duration interval = rendezvous_heartbeat_interval(machine);
    /* Those that are written less often are written ahead. */
    int64_t lead = interval.nanoseconds - machine->settings.keep_alive_interval.nanoseconds;
    if (!rendezvous_link_is_heartbeat_due(&machine->link, step->event->now)) {
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
    rendezvous_link_put_off_heartbeat(&machine->link, step->event->now, interval);
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
    struct instant now = step->event->now;
    rendezvous_losses_look(&machine->losses, seen, now, machine->settings.keep_alive_interval,
        machine->link.has_presence);
    rendezvous_place_look(&machine->place, &machine->view);
    rendezvous_growth_look(&machine->growth, seen, now);
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
    return rendezvous_link_is_pausing(&machine->link) || rendezvous_draft_write(step, false);
}

void rendezvous_evaluate(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
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
        if (rendezvous_link_is_pausing(&machine->link)) {
            return;
        }
    }
    handlers[situation][goal](step);
}
