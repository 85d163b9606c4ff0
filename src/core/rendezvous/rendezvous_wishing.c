/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous/rendezvous_wishing.h"

#include <stdio.h>
#include <string.h>

#include "core/rendezvous/rendezvous_regroup.h"

static bool may_be_ranked(const struct rendezvous_machine *machine) {
    return machine->role.role != NULL && machine->role.local_world_size > 0 &&
           strlen(machine->role.role) < RENDEZVOUS_WISH_ROLE_SIZE;
}

void rendezvous_wishing_begin(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    const struct rendezvous_event *event = step->event;
    bool delegates = machine->settings.delegates && event->connected.offers_delegation &&
                     event->connected.has_presence && !event->connected.is_host;
    rendezvous_delegating_begin(&machine->delegating, delegates, may_be_ranked(machine),
        machine->place.world.round == RENDEZVOUS_NO_ROUND);
    rendezvous_place_say_nothing(&machine->place);
    if (machine->delegating.is_on) {
        rendezvous_link_skip_fetch(&machine->link);
    }
}

static void write_itself(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    rendezvous_delegating_end(&machine->delegating);
    rendezvous_view_begin(&machine->view);
    rendezvous_patience_count_again(&machine->patience);
    rendezvous_link_note_change(&machine->link, false);
    if (machine->purpose.goal != RENDEZVOUS_GOAL_OVER) {
        rendezvous_step_present(step);
    }
}

void rendezvous_wishing_take_standing(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    const struct rendezvous_event *event = step->event;
    if (!machine->delegating.is_on || !rendezvous_link_is_open(&machine->link)) {
        return;
    }
    if (event->standing.is_withdrawn) {
        write_itself(step);
    } else {
        rendezvous_view_be_told(&machine->view, event->standing.state);
        rendezvous_delegating_take_answer(&machine->delegating, event->standing.answers);
        rendezvous_delegating_take_ranks(&machine->delegating, event->standing.state->round,
            event->standing.is_held, &event->standing.ranks, &event->standing.meeting);
    }
}

/* A node whose time to join is over has more to look at than it is told. */
static bool is_late(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    const struct rendezvous_state *seen = &machine->view.seen;
    return machine->view.has_record && !seen->is_closed && !machine->place.is_in_world &&
           rendezvous_patience_is_late(
               &machine->patience, rendezvous_state_participants(seen), step->event->now);
}

/* A node that is late has asked to write the record itself. A host that tells it nothing, now or
 * ever, is not waited for: its store answers, and this node does what is left to do. */
static bool is_left_alone(const struct rendezvous_step *step) {
    const struct rendezvous_machine *machine = step->machine;
    return machine->delegating.is_on && rendezvous_link_is_open(&machine->link) &&
           machine->purpose.goal == RENDEZVOUS_GOAL_TAKE_PART && !machine->place.is_in_world &&
           (machine->view.has_record
                   ? rendezvous_patience_is_too_late(&machine->patience, step->event->now)
                   : moment_has_come(&machine->patience.join_deadline, step->event->now));
}

void rendezvous_wishing_let_time_pass(struct rendezvous_step *step) {
    if (is_left_alone(step)) {
        write_itself(step);
    }
}

static bool is_held_back(const struct rendezvous_machine *machine) {
    return machine->warming.patience.nanoseconds > 0 &&
           (!machine->view.has_record || machine->warming.end.is_set);
}

/* The round in which this node is, although its world is over for this node. */
static void wish_end_of_round(
    const struct rendezvous_machine *machine, struct rendezvous_wish *wish) {
    const struct rendezvous_state *seen = &machine->view.seen;
    char reason[RENDEZVOUS_MESSAGE_SIZE];
    if (machine->place.is_in_world || !rendezvous_regroup_is_possible(seen) ||
        !rendezvous_view_is_participant(&machine->view) ||
        seen->round != machine->place.ended_round) {
        return;
    }
    wish->ended_round = seen->round;
    wish->is_charged = rendezvous_failure_wants_restart(&machine->failure);
    rendezvous_place_name_missing(&machine->place, seen, seen->round, reason, sizeof reason);
    snprintf(wish->reason, sizeof wish->reason, "%.*s", (int)sizeof wish->reason - 1,
        wish->is_charged ? machine->failure.reason : reason);
}

static struct rendezvous_wish wish_to_take_part(struct rendezvous_step *step) {
    const struct rendezvous_machine *machine = step->machine;
    if (is_late(step)) {
        return rendezvous_wish_of(RENDEZVOUS_WISH_OWN);
    }
    struct rendezvous_wish wish =
        rendezvous_wish_of(is_held_back(machine) ? RENDEZVOUS_WISH_LOOK : RENDEZVOUS_WISH_JOIN);
    if (machine->view.has_record) {
        wish_end_of_round(machine, &wish);
    }
    if (rendezvous_failure_is_doubted(&machine->failure)) {
        wish.doubted_round = machine->view.seen.round;
    }
    return wish;
}

/* A node that was in a world before may still end its workers when the next round begins. So the
 * host waits for its word. What it has said of earlier rounds, it need not take back. */
static void wish_ranks(const struct rendezvous_machine *machine, struct rendezvous_wish *wish) {
    const struct rendezvous_place *place = &machine->place;
    if (!machine->delegating.says_role) {
        return;
    }
    wish->local_world_size = machine->role.local_world_size;
    snprintf(wish->role, sizeof wish->role, "%s", machine->role.role);
    if (wish->reason[0] == '\0' && place->meeting.round != RENDEZVOUS_WISH_NO_ROUND) {
        wish->meeting = place->meeting; /* the text has room for one of them */
    } else if (machine->delegating.is_new) {
        wish->meeting.round = RENDEZVOUS_WISH_ANY_ROUND;
    }
}

static struct rendezvous_wish wish_of(struct rendezvous_step *step) {
    const struct rendezvous_machine *machine = step->machine;
    struct rendezvous_wish wish = rendezvous_wish_of(RENDEZVOUS_WISH_LOOK);
    switch (machine->purpose.goal) {
    case RENDEZVOUS_GOAL_TAKE_PART:
        wish = wish_to_take_part(step);
        break;
    case RENDEZVOUS_GOAL_CLOSE:
        wish.kind = RENDEZVOUS_WISH_CLOSE;
        snprintf(wish.reason, sizeof wish.reason, "%.*s", (int)sizeof wish.reason - 1,
            machine->purpose.message);
        wish.signal = machine->purpose.signal;
        break;
    case RENDEZVOUS_GOAL_LEAVE:
        wish.kind = RENDEZVOUS_WISH_LEAVE;
        wish.signal = machine->purpose.signal;
        break;
    case RENDEZVOUS_GOAL_NONE:
    case RENDEZVOUS_GOAL_OVER:
    case RENDEZVOUS_GOAL_COUNT:
        break;
    }
    if (machine->finish.is_here) {
        wish.finished_round = rendezvous_place_round(&machine->place);
    }
    wish_ranks(machine, &wish);
    return wish;
}

void rendezvous_wishing_say(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    if (!machine->delegating.is_on || !rendezvous_link_is_open(&machine->link) ||
        machine->purpose.goal == RENDEZVOUS_GOAL_OVER) {
        return;
    }
    struct rendezvous_wish wish = wish_of(step);
    if (rendezvous_delegating_wish(&machine->delegating, &wish)) {
        rendezvous_step_present(step);
    }
}
