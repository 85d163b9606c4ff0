/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous_evaluation.h"

#include <stdio.h>

#include "core/rendezvous_decision.h"
#include "core/rendezvous_doubt.h"
#include "core/rendezvous_growth.h"
#include "core/rendezvous_losses.h"
#include "core/rendezvous_regroup.h"

/* How long after the join deadline torchrun's rules still take a node out of the record. */
#define ROLLBACK_SECONDS 5

/* The end of this node's part, asked for. */

static bool close_record(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    struct rendezvous_state *draft = rendezvous_draft_begin(machine);
    rendezvous_apply(
        draft, &machine->settings, &machine->me, RENDEZVOUS_MARK_CLOSED, step->event->wall_now);
    draft->has_failed = machine->message[0] != '\0';
    rendezvous_regroup_explain(draft, machine->message);
    return rendezvous_draft_write(step, false);
}

/* Who goes when its work is done is not missed: the world it worked in keeps it. */
static bool leave_record(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    bool is_done = machine->is_finished && machine->world_round == machine->seen.round &&
                   rendezvous_regroup_is_possible(&machine->seen);
    if (rendezvous_self(machine) == NULL || is_done) {
        rendezvous_settle(step);
        return true;
    }
    if (rendezvous_regroup_is_possible(&machine->seen) && rendezvous_is_participant(machine) &&
        rendezvous_settings_heed_losses(&machine->settings)) {
        char reason[RENDEZVOUS_MESSAGE_SIZE];
        rendezvous_losses_name(reason, sizeof reason, &machine->me, "has left");
        return rendezvous_losses_regroup(
            step, (struct rendezvous_regroup){.gone = &machine->me,
                      .gone_count = 1,
                      .is_refunded = rendezvous_doubt_may_be_consequence(step),
                      .reason = reason});
    }
    rendezvous_state_expel(rendezvous_draft_begin(machine), &machine->settings, &machine->me);
    return rendezvous_draft_write(step, false);
}

/* The world this node runs in. */

/* By the record: torchrun's nodes leave without a word, and nobody says who was taken out. Nodes on
 * their way from one round to the next are missing for a moment, or wait. */
static void name_who_left(
    const struct rendezvous_machine *machine, int64_t round, char *out, size_t size) {
    const struct rendezvous_state *world = &machine->world;
    const struct rendezvous_node *missing = NULL;
    size_t count = world->round == round ? world->count : 0; /* else it was not in that world */
    for (size_t i = 0; i < count && missing == NULL; i++) {
        const struct rendezvous_node *node = &world->nodes[i];
        bool is_there = rendezvous_state_find(&machine->seen, &node->identity) != NULL;
        missing = node->is_participant && !is_there ? node : NULL;
    }
    if (missing == NULL) {
        snprintf(out, size, "a node has left the round");
    } else {
        rendezvous_losses_name(out, size, &missing->identity, "has left the round");
    }
}

static void explain_new_round(const struct rendezvous_machine *machine, char *out, size_t size) {
    bool is_told = machine->seen.round > machine->world_round && machine->seen.reason[0] != '\0';
    if (rendezvous_self(machine) == NULL) {
        snprintf(out, size,
            "the others have taken this node out of the job, since they heard nothing of it");
    } else if (is_told) {
        snprintf(out, size, "%s", machine->seen.reason);
    } else {
        name_who_left(machine, machine->world_round, out, size);
    }
}

/* torchrun's nodes begin anew when somebody waits, and Muster's beside them do the same; but not
 * when workers are done already: then it is the exit barrier they wait for, and nobody looks. */
static bool heeds_waiting(struct rendezvous_step *step) {
    const struct rendezvous_machine *machine = step->machine;
    const struct rendezvous_state *seen = &machine->seen;
    return rendezvous_state_has_foreign_participant(seen) && rendezvous_state_waiting(seen) > 0 &&
           rendezvous_state_participants(seen) < (size_t)machine->settings.maximum_nodes &&
           !seen->is_draining && !machine->is_finished && !rendezvous_is_somebody_done(step);
}

static void check_world(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    const struct rendezvous_state *seen = &machine->seen;
    if (machine->world_round == RENDEZVOUS_NO_ROUND) {
        return;
    }
    char reason[RENDEZVOUS_MESSAGE_SIZE];
    bool is_here = seen->is_complete && seen->round == machine->world_round &&
                   rendezvous_is_participant(machine);
    if (!is_here) {
        explain_new_round(machine, reason, sizeof reason);
        rendezvous_end_world(step, reason);
    } else if (rendezvous_state_participants(seen) < machine->world_size &&
               rendezvous_settings_heed_losses(&machine->settings)) {
        name_who_left(machine, seen->round, reason, sizeof reason);
        rendezvous_end_world(step, reason);
    } else if (heeds_waiting(step)) {
        rendezvous_end_world(step, "a node waits to join");
    }
}

static bool restart(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    const struct rendezvous_state *seen = &machine->seen;
    if (!machine->is_restart_wanted) {
        return false;
    }
    if (seen->round != machine->ended_round || !rendezvous_is_participant(machine)) {
        machine->is_restart_wanted = false; /* the next round has begun, or was left for */
        return false;
    }
    if (!rendezvous_regroup_is_possible(seen)) {
        return false; /* this node will leave the round, as torchrun's do */
    }
    return rendezvous_losses_regroup(
        step, (struct rendezvous_regroup){.is_charged = true, .reason = machine->restart_reason});
}

/* Finding the way into a world. */

static void tell_world(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    const struct rendezvous_state *seen = &machine->seen;
    machine->world_round = seen->round;
    machine->world_size = rendezvous_state_participants(seen);
    rendezvous_state_copy(seen, &machine->world);
    machine->is_join_asked = false;
    moment_clear(&machine->join_deadline);
    rendezvous_step_push(step, (struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_WORLD,
                                   .world = {.state = seen,
                                       .identity = machine->me,
                                       .round = seen->round,
                                       .group_rank = (int)rendezvous_self(machine)->rank,
                                       .node_count = (int)machine->world_size}});
}

/* A record's last call lasts for its time on this node's clock, from when it was first seen. */
static bool is_last_call_over(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    const struct rendezvous_state *seen = &machine->seen;
    if (seen->is_complete || !seen->has_deadline) {
        moment_clear(&machine->last_call);
        return false;
    }
    if (!machine->last_call.is_set || machine->last_call_round != seen->round ||
        machine->last_call_deadline.nanoseconds != seen->deadline.nanoseconds) {
        machine->last_call_round = seen->round;
        machine->last_call_deadline = seen->deadline;
        moment_set_after(&machine->last_call, step, machine->settings.last_call_timeout);
    }
    return moment_has_come(&machine->last_call, step->event->now);
}

/* A node that waits beside a running world of Muster's waits as long as it takes. */
static bool is_parked(const struct rendezvous_machine *machine) {
    const struct rendezvous_node *self = rendezvous_self(machine);
    return self != NULL &&
           (self->is_redundant ||
               (self->is_waiting && rendezvous_regroup_is_possible(&machine->seen)));
}

static void prolong_patience(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    moment_set_after(&machine->join_deadline, step, machine->settings.join_timeout);
    moment_clear(&machine->rollback_deadline);
}

static void fail_late(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    char reason[RENDEZVOUS_MESSAGE_SIZE];
    snprintf(reason, sizeof reason,
        "no world came together within the join timeout of %g s: round %lld has %zu of at least "
        "%d nodes",
        duration_seconds(machine->settings.join_timeout), (long long)machine->seen.round,
        machine->size_when_late, machine->settings.minimum_nodes);
    rendezvous_fail(step, reason);
}

/* Of many who come at once, each would wake all who came before; but until the round is complete
 * none of these has anything to do. */
static bool is_news_to_nobody(const struct rendezvous_state *draft, enum rendezvous_action action) {
    return action == RENDEZVOUS_ADD_TO_PARTICIPANTS && !draft->is_complete;
}

static bool take_action(struct rendezvous_step *step, enum rendezvous_action action, bool is_late) {
    struct rendezvous_machine *machine = step->machine;
    if (action == RENDEZVOUS_ERROR_TIMEOUT) {
        fail_late(step);
        return true;
    }
    if (action > RENDEZVOUS_MARK_COMPLETE || action == RENDEZVOUS_KEEP_ALIVE) {
        return false;
    }
    struct rendezvous_state *draft = rendezvous_draft_begin(machine);
    rendezvous_apply(draft, &machine->settings, &machine->me, action, step->event->wall_now);
    if (draft->wanted > 0 && !rendezvous_state_has_foreign_participant(draft)) {
        draft->has_deadline =
            false; /* torchrun's rule, where Muster's has another number in mind */
    }
    (void)rendezvous_regroup_settle(draft, &machine->settings, is_late);
    rendezvous_regroup_park(draft, &machine->settings);
    if (action == RENDEZVOUS_REMOVE_FROM_PARTICIPANTS && machine->is_restart_wanted) {
        draft->restarts++;
        rendezvous_regroup_explain(draft, machine->restart_reason);
    }
    return rendezvous_draft_write(step, is_news_to_nobody(draft, action));
}

static bool join(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    struct rendezvous_context context = {
        .node = &machine->me,
        .state = &machine->seen,
        .settings = &machine->settings,
        .is_last_call_over = is_last_call_over(step),
    };
    if (is_parked(machine)) {
        prolong_patience(step);
    }
    context.is_late = moment_has_come(&machine->join_deadline, step->event->now);
    if (context.is_late && !machine->rollback_deadline.is_set) {
        machine->size_when_late = rendezvous_state_participants(&machine->seen);
        moment_set_after(
            &machine->rollback_deadline, step, duration_from_seconds(ROLLBACK_SECONDS));
    }
    context.is_too_late =
        context.is_late && moment_has_come(&machine->rollback_deadline, step->event->now);
    struct rendezvous_state *draft = rendezvous_draft_begin(machine);
    if (rendezvous_is_participant(machine) &&
        rendezvous_regroup_settle(draft, &machine->settings, context.is_late)) {
        return rendezvous_draft_write(step, false);
    }
    return take_action(step, rendezvous_decide_join(&context), context.is_late);
}

static bool leave_ended_round(struct rendezvous_step *step) {
    const struct rendezvous_machine *machine = step->machine;
    if (rendezvous_regroup_is_possible(&machine->seen)) {
        char reason[RENDEZVOUS_MESSAGE_SIZE];
        name_who_left(machine, machine->ended_round, reason, sizeof reason);
        return rendezvous_losses_regroup(step, (struct rendezvous_regroup){.reason = reason});
    }
    struct rendezvous_context context = {
        .node = &machine->me, .state = &machine->seen, .settings = &machine->settings};
    return take_action(step, rendezvous_decide_exit(&context), false);
}

static bool strive(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    const struct rendezvous_state *seen = &machine->seen;
    if (machine->world_round != RENDEZVOUS_NO_ROUND) {
        return false;
    }
    if (!seen->is_complete || !rendezvous_is_participant(machine)) {
        return join(step);
    }
    if (seen->round == machine->ended_round) {
        return leave_ended_round(step);
    }
    if (!rendezvous_state_is_whole(seen)) {
        machine->ended_round = seen->round; /* somebody was here and has left */
        return leave_ended_round(step);
    }
    if (machine->is_join_asked) {
        tell_world(step);
    }
    return false;
}

/* Marks and heartbeats. */

static bool park_the_waiting(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    if (!rendezvous_regroup_would_park(&machine->seen, &machine->settings)) {
        return false;
    }
    rendezvous_regroup_park(rendezvous_draft_begin(machine), &machine->settings);
    return rendezvous_draft_write(step, false);
}

static bool mark_draining(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    if (!machine->is_finished || machine->seen.is_draining ||
        machine->seen.round != machine->world_round) {
        return false;
    }
    rendezvous_draft_begin(machine)->is_draining = true;
    return rendezvous_draft_write(step, true);
}

/* torchrun's nodes judge everybody by the record; so the host speaks for all whose presence it
 * knows, and a node without such a host for itself. */
static bool keep_alive(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    if (!moment_has_come(&machine->heartbeat_at, step->event->now)) {
        return false;
    }
    struct rendezvous_state *draft = rendezvous_draft_begin(machine);
    bool has_changed = false;
    for (size_t i = 0; i < draft->count; i++) {
        struct rendezvous_node *node = &draft->nodes[i];
        bool is_mine = machine->has_presence
                           ? machine->is_host && node_identity_is_muster(&node->identity) &&
                                 !rendezvous_losses_include(machine, &node->identity)
                           : node_identity_equals(&node->identity, &machine->me);
        if (is_mine) {
            node->has_heartbeat = true;
            node->heartbeat = step->event->wall_now;
            has_changed = true;
        }
    }
    if (!has_changed) {
        moment_set_after(&machine->heartbeat_at, step, machine->settings.keep_alive_interval);
        return false;
    }
    (void)rendezvous_draft_write(step, true);
    machine->is_writing_heartbeats = true;
    return true;
}

static bool take_part(struct rendezvous_step *step) {
    return rendezvous_losses_take_out(step) || rendezvous_doubt_pursue(step) || restart(step) ||
           rendezvous_growth_admit(step) || strive(step) || park_the_waiting(step) ||
           mark_draining(step) || keep_alive(step);
}

static void note_parking(struct rendezvous_machine *machine) {
    const struct rendezvous_node *self = rendezvous_self(machine);
    if (!machine->seen.is_closed) {
        machine->was_parked = self != NULL && (self->is_waiting || self->is_redundant);
    }
}

void rendezvous_evaluate(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    int64_t interval = machine->settings.keep_alive_interval.nanoseconds;
    heartbeat_watch_look(
        &machine->heartbeats, &machine->seen, step->event->now, (struct duration){2 * interval});
    note_parking(machine);
    rendezvous_growth_look(step);
    rendezvous_doubt_look(step);
    if (machine->seen.is_closed) {
        if (machine->is_doubting && !machine->seen.has_failed) {
            rendezvous_doubt_overcome(step); /* nobody else will say that the job has failed */
        }
        if (machine->goal == RENDEZVOUS_GOAL_TAKE_PART) {
            rendezvous_close_part(step);
        } else {
            rendezvous_settle(step);
        }
        return;
    }
    if (machine->goal == RENDEZVOUS_GOAL_TAKE_PART) {
        check_world(step);
    }
    rendezvous_doubt_answer(step);
    if (machine->retry_at.is_set) {
        return;
    }
    if (machine->goal == RENDEZVOUS_GOAL_TAKE_PART) {
        (void)take_part(step);
    } else if (machine->goal == RENDEZVOUS_GOAL_LEAVE) {
        (void)leave_record(step);
    }
    if (machine->goal == RENDEZVOUS_GOAL_CLOSE) { /* perhaps only now */
        (void)close_record(step);
    }
}
