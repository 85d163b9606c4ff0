/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous/rendezvous_step.h"

#include <assert.h>
#include <stdio.h>

#include "core/rendezvous/rendezvous_serving.h"

/* The largest signal number. */
#define SIGNAL_MAXIMUM 64
/* How long a machine that refuses every connection is tried, after there was one. Its process of
 * the store has ended then, and the record is lost with it, so a longer wait would only delay the
 * error. But a store that is started again at once is found. */
#define REFUSAL_PATIENCE_SECONDS 5

/* Effects. */

void rendezvous_step_push(struct rendezvous_step *step, struct rendezvous_effect effect) {
    assert(step->effects->count < RENDEZVOUS_EFFECTS_MAXIMUM);
    step->effects->items[step->effects->count++] = effect;
}

void rendezvous_step_push_kind(struct rendezvous_step *step, enum rendezvous_effect_kind kind) {
    rendezvous_step_push(step, (struct rendezvous_effect){.kind = kind});
}

void rendezvous_step_present(struct rendezvous_step *step) {
    const struct rendezvous_machine *machine = step->machine;
    bool wishes = machine->delegating.is_on;
    if (wishes && machine->delegating.wish.sequence == 0) {
        return; /* its first wish, with which it shows itself, follows in this step */
    }
    rendezvous_step_push(step, (struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_PRESENT,
                                   .present = {machine->view.me, machine->finish.is_here,
                                       wishes ? &machine->delegating.wish : NULL}});
}

/* The store. */

bool rendezvous_is_any_node_done(struct rendezvous_step *step) {
    struct rendezvous_finish *finish = &step->machine->finish;
    int64_t round = step->machine->view.seen.round;
    if (rendezvous_finish_ask(finish, round)) {
        rendezvous_step_push(step,
            (struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_COUNT_FINISHED, .round = round});
    }
    return rendezvous_finish_is_anywhere(finish);
}

/* Nobody can know all rounds of a record that was lost, and what their nodes have left in the store
 * would be taken for new in a round of the same number. So rounds that begin from now on get
 * numbers that no round had. torchrun's nodes look for what they share in the rounds just before.
 */
static void keep_clear_of_rounds(struct rendezvous_step *step, struct rendezvous_state *draft) {
    struct rendezvous_machine *machine = step->machine;
    if (rendezvous_view_may_miss_rounds(&machine->view) &&
        !rendezvous_state_has_foreign_node(draft)) {
        rendezvous_state_renumber(draft, record_connection_draw_base(&machine->connection));
    }
}

bool rendezvous_step_acts_for_all(const struct rendezvous_machine *machine) {
    return machine->connection.has_presence ? machine->connection.is_host
                                            : rendezvous_view_is_first(&machine->view);
}

struct rendezvous_state *rendezvous_draft_begin(struct rendezvous_step *step) {
    struct rendezvous_state *draft = rendezvous_view_begin_draft(&step->machine->view);
    rendezvous_state_raise_restarts(draft, rendezvous_failure_restarts(&step->machine->failure));
    if (draft->origin == 0 || step->machine->view.is_lost) {
        draft->origin = step->machine->view.me.local_id;
    }
    keep_clear_of_rounds(step, draft);
    return draft;
}

/* A restart that the draft charges has just been. */
static void tell_ages(
    const struct rendezvous_machine *machine, struct rendezvous_state *draft, struct instant now) {
    struct duration window = machine->settings.restart_window;
    if (window.nanoseconds > 0) {
        struct restart_history history = machine->restarts;
        restart_history_note(&history, draft->restarts, &draft->ages, now);
        restart_history_tell(&history, window, now, &draft->ages);
    }
}

static bool write_draft(struct rendezvous_step *step, bool is_quiet, bool is_heartbeats) {
    struct rendezvous_machine *machine = step->machine;
    if (machine->delegating.is_on) {
        return true;
    }
    rendezvous_view_count_on(&machine->view);
    tell_ages(machine, &machine->view.draft, step->event->now);
    rendezvous_serving_rank(step);
    /* Who holds a later record than the one that is written again learns of the loss from it. */
    is_quiet = is_quiet && !rendezvous_view_may_miss_rounds(&machine->view);
    record_connection_write(&machine->connection, is_heartbeats, step->event->now);
    rendezvous_step_push(step, (struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_WRITE,
                                   .write = {&machine->view.draft, is_quiet}});
    return true;
}

bool rendezvous_draft_write(struct rendezvous_step *step, bool is_quiet) {
    return write_draft(step, is_quiet, false);
}

bool rendezvous_draft_write_heartbeats(struct rendezvous_step *step) {
    return write_draft(step, true, true);
}

bool rendezvous_is_host_sought(const struct rendezvous_step *step) {
    const struct rendezvous_machine *machine = step->machine;
    return machine->has_succession && machine->connection.was_open &&
           machine->connection.phase == RECORD_CONNECTION_CONNECTING;
}

void rendezvous_connect_until(struct rendezvous_step *step, struct instant deadline) {
    record_connection_connect(&step->machine->connection);
    rendezvous_step_push(
        step, (struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_CONNECT, .deadline = deadline});
}

void rendezvous_connect_again(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    struct instant now = step->event->now;
    struct instant deadline = instant_earlier(
        machine->patience.join_deadline.at, instant_after(now, machine->settings.host_timeout));
    record_connection_connect_again(&machine->connection, now, deadline);
    rendezvous_step_push(
        step, (struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_CONNECT,
                  .refusal_patience = duration_from_seconds(REFUSAL_PATIENCE_SECONDS),
                  .deadline = deadline});
}

void rendezvous_tell_waiting(struct rendezvous_step *step) {
    struct record_connection *connection = &step->machine->connection;
    struct instant now = step->event->now;
    if (record_connection_says_lost(connection, now)) {
        rendezvous_step_push(
            step, (struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_STORE_AWAITED,
                      .awaited = {instant_until(connection->lost_at, now),
                          instant_until(now, connection->given_up_at)}});
    }
}

/* What the agent is told. */

/* A restart of Muster's nodes is charged in the record, unless a lost node has caused it. */
static bool is_counted(const struct rendezvous_machine *machine) {
    const struct rendezvous_state *seen = &machine->view.seen;
    const struct rendezvous_state *world = &machine->place.world;
    return rendezvous_state_ordinal(seen) > rendezvous_state_ordinal(world) &&
           !rendezvous_state_has_foreign_participant(seen) &&
           !rendezvous_state_has_foreign_participant(world);
}

static void tell(struct rendezvous_step *step, enum rendezvous_effect_kind kind, const char *reason,
    int64_t signal) {
    const struct rendezvous_machine *machine = step->machine;
    struct rendezvous_purpose *purpose = &step->machine->purpose;
    bool has_count = kind == RENDEZVOUS_EFFECT_ROUND_OVER && is_counted(machine);
    if (reason != purpose->message) {
        snprintf(purpose->message, sizeof purpose->message, "%s", reason);
    }
    rendezvous_step_push(
        step, (struct rendezvous_effect){.kind = kind,
                  .told = {.reason = purpose->message,
                      .is_spare = machine->place.was_parked,
                      .is_next_whole = kind == RENDEZVOUS_EFFECT_ROUND_OVER && signal > 0 &&
                                       machine->view.seen.is_complete,
                      .is_harmless =
                          has_count && machine->view.seen.restarts <= machine->place.world.restarts,
                      .is_counted = has_count,
                      .restarts = has_count ? (int)machine->view.seen.restarts : 0,
                      .signal = signal > 0 && signal <= SIGNAL_MAXIMUM ? (int)signal : 0}});
}

struct rank_assignment rendezvous_step_ranks(const struct rendezvous_step *step) {
    const struct rendezvous_machine *machine = step->machine;
    const struct rendezvous_state *seen = &machine->view.seen;
    const struct rendezvous_node *self = rendezvous_view_self(&machine->view);
    if (self == NULL || !self->is_participant || !rendezvous_state_is_ranked(seen)) {
        return (struct rank_assignment){0};
    }
    if (machine->delegating.is_on) {
        return machine->delegating.ranked_round == seen->round ? machine->delegating.ranks
                                                               : (struct rank_assignment){0};
    }
    return rendezvous_delegates_ranks(&machine->delegates, seen->round, self->rank);
}

bool rendezvous_step_is_held(const struct rendezvous_step *step) {
    const struct rendezvous_machine *machine = step->machine;
    if (!rendezvous_view_is_participant(&machine->view) || !machine->view.seen.is_complete) {
        return false;
    }
    return machine->delegating.is_on
               ? rendezvous_delegating_is_held(&machine->delegating, machine->view.seen.round)
               : rendezvous_serving_holds(machine);
}

/* The host tells it to those who delegate. It has none for itself: it is told of the world first.
 */
static struct rendezvous_meeting told_meeting(
    const struct rendezvous_machine *machine, const struct rank_assignment *ranks) {
    return machine->delegating.is_on && ranks->world_size > 0
               ? machine->delegating.meeting
               : (struct rendezvous_meeting){.round = RENDEZVOUS_WISH_NO_ROUND};
}

static struct restart_ages ages_now(const struct rendezvous_machine *machine, struct instant now) {
    struct restart_ages ages;
    restart_history_tell(&machine->restarts, machine->settings.restart_window, now, &ages);
    return ages;
}

void rendezvous_tell_world(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    const struct rendezvous_state *seen = &machine->view.seen;
    struct rank_assignment ranks = rendezvous_step_ranks(step);
    bool is_held = rendezvous_step_is_held(step);
    int group_rank = (int)rendezvous_view_self(&machine->view)->rank;
    bool opens_store = group_rank == 0 && (is_held || ranks.world_size > 0);
    rendezvous_place_enter(&machine->place, seen, opens_store, is_held);
    rendezvous_delegates_note_host_ready(&machine->delegates, seen->round);
    rendezvous_patience_end(&machine->patience);
    rendezvous_warming_finish(&machine->warming);
    rendezvous_step_push(step, (struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_WORLD,
                                   .world = {.state = seen,
                                       .ages = ages_now(machine, step->event->now),
                                       .identity = machine->view.me,
                                       .round = seen->round,
                                       .group_rank = group_rank,
                                       .node_count = (int)rendezvous_state_participants(seen),
                                       .is_held = is_held,
                                       .ranks = ranks,
                                       .meeting = told_meeting(machine, &ranks),
                                       .had_roll = machine->failure.has_answered}});
}

/* This node's own ranks and place are those of the delegates, too. */
void rendezvous_release_world(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    struct rank_assignment ranks = rendezvous_step_ranks(step);
    if (!machine->place.is_held || machine->view.seen.round != machine->place.world.round ||
        ranks.world_size == 0) {
        return;
    }
    rendezvous_place_release(&machine->place);
    rendezvous_step_push(
        step, (struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_RELEASED,
                  .released = {.round = machine->view.seen.round,
                      .ranks = ranks,
                      .meeting = machine->delegating.is_on ? machine->delegating.meeting
                                                           : machine->delegates.meeting}});
}

/* This node's workers no longer count as done, since their round is over. The host of the store is
 * told so. */
static void forget_finish(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    if (machine->finish.is_here) {
        rendezvous_finish_leave(&machine->finish);
        if (record_connection_is_open(&machine->connection)) {
            rendezvous_step_present(step);
        }
    }
}

void rendezvous_leave_world(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    rendezvous_place_leave(&machine->place);
    rendezvous_failure_end(&machine->failure);
    rendezvous_patience_begin(&machine->patience, step->event->now, machine->settings.join_timeout);
    forget_finish(step);
}

void rendezvous_end_world(struct rendezvous_step *step, const char *reason) {
    if (step->machine->place.is_in_world) {
        const struct rendezvous_state *seen = &step->machine->view.seen;
        bool is_later =
            rendezvous_state_ordinal(seen) > rendezvous_state_ordinal(&step->machine->place.world);
        rendezvous_leave_world(step);
        tell(step, RENDEZVOUS_EFFECT_ROUND_OVER, reason, is_later ? seen->signal : 0);
    }
}

void rendezvous_end_part(struct rendezvous_step *step, enum rendezvous_goal goal) {
    struct rendezvous_machine *machine = step->machine;
    rendezvous_failure_end(&machine->failure);
    if (machine->purpose.goal != RENDEZVOUS_GOAL_TAKE_PART ||
        (!record_connection_is_open(&machine->connection) && !rendezvous_is_host_sought(step))) {
        rendezvous_settle(step);
        return;
    }
    machine->purpose.goal = goal;
    rendezvous_patience_begin_end(
        &machine->patience, step->event->now, machine->settings.close_timeout);
}

void rendezvous_let_failure_stand(struct rendezvous_step *step) {
    struct rendezvous_purpose *purpose = &step->machine->purpose;
    snprintf(purpose->message, sizeof purpose->message, "%s", step->machine->failure.reason);
    rendezvous_step_push_kind(step, RENDEZVOUS_EFFECT_FAILURE_STANDS);
    rendezvous_end_part(step, RENDEZVOUS_GOAL_CLOSE);
}

static void end_with(struct rendezvous_step *step, enum rendezvous_effect_kind end) {
    step->machine->purpose.goal = RENDEZVOUS_GOAL_OVER;
    step->machine->purpose.end = end;
}

void rendezvous_close_part(struct rendezvous_step *step) {
    const struct rendezvous_state *seen = &step->machine->view.seen;
    end_with(step, RENDEZVOUS_EFFECT_CLOSED);
    tell(step, RENDEZVOUS_EFFECT_CLOSED, seen->has_failed ? seen->reason : "",
        seen->has_failed ? seen->signal : 0);
}

void rendezvous_tell_closing(struct rendezvous_step *step) {
    if (!step->machine->purpose.is_closing_told) {
        step->machine->purpose.is_closing_told = true;
        tell(step, RENDEZVOUS_EFFECT_CLOSED, "", 0);
    }
}

void rendezvous_fail(struct rendezvous_step *step, const char *reason) {
    end_with(step, RENDEZVOUS_EFFECT_FAILED);
    tell(step, RENDEZVOUS_EFFECT_FAILED, reason, 0);
}

void rendezvous_settle(struct rendezvous_step *step) {
    end_with(step, RENDEZVOUS_EFFECT_SETTLED);
    rendezvous_step_push_kind(step, RENDEZVOUS_EFFECT_SETTLED);
}

void rendezvous_repeat_end(struct rendezvous_step *step) {
    tell(step, step->machine->purpose.end, step->machine->purpose.message, 0);
}
