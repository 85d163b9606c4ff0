/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous/rendezvous_machine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "core/rendezvous/rendezvous_evaluation.h"
#include "core/rendezvous/rendezvous_serving.h"
#include "core/rendezvous/rendezvous_step.h"

/* What a node that delegates wishes follows from what it does: from its goal, its place, and what
 * failed on it. This module says it, and takes what the host of the store tells. */

static bool may_be_ranked(const struct rendezvous_machine *machine) {
    return machine->role.role != NULL && machine->role.local_world_size > 0 &&
           strlen(machine->role.role) < RENDEZVOUS_WISH_ROLE_SIZE;
}

/* The connection stands. Takes the offer of the host, where there is one and this node may. */
static void rendezvous_wishing_begin(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    const struct rendezvous_event *event = step->event;
    bool delegates = machine->settings.delegates && event->connected.offers_delegation &&
                     event->connected.has_presence && !event->connected.is_host;
    rendezvous_delegating_begin(&machine->delegating, delegates, may_be_ranked(machine),
        machine->place.world.round == RENDEZVOUS_NO_ROUND);
    rendezvous_place_say_nothing(&machine->place);
    if (machine->delegating.is_on) {
        record_connection_skip_fetch(&machine->connection);
    }
}

static void write_itself(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    rendezvous_delegating_end(&machine->delegating);
    rendezvous_view_begin(&machine->view);
    rendezvous_patience_count_again(&machine->patience);
    record_connection_note_change(&machine->connection, false);
    if (machine->purpose.goal != RENDEZVOUS_GOAL_OVER) {
        rendezvous_step_present(step);
    }
}

/* Takes the event STANDING. A node that is to write the record itself begins to do so. */
static void rendezvous_wishing_take_standing(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    const struct rendezvous_event *event = step->event;
    if (!machine->delegating.is_on || !record_connection_is_open(&machine->connection)) {
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
    return machine->delegating.is_on && record_connection_is_open(&machine->connection) &&
           machine->purpose.goal == RENDEZVOUS_GOAL_TAKE_PART && !machine->place.is_in_world &&
           (machine->view.has_record
                   ? rendezvous_patience_is_too_late(&machine->patience, step->event->now)
                   : moment_has_come(&machine->patience.join_deadline, step->event->now));
}

/* A node whose time to join is over, and whom the host does not answer, writes the record itself
 * from now on. The machine calls it in every step, before it decides. */
static void rendezvous_wishing_let_time_pass(struct rendezvous_step *step) {
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

/* Says what this node wishes, if that has changed. The machine calls it after every event. */
static void rendezvous_wishing_say(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    if (!machine->delegating.is_on || !record_connection_is_open(&machine->connection) ||
        machine->purpose.goal == RENDEZVOUS_GOAL_OVER) {
        return;
    }
    struct rendezvous_wish wish = wish_of(step);
    if (rendezvous_delegating_wish(&machine->delegating, &wish)) {
        rendezvous_step_present(step);
    }
}

/* What a connection to the store, and its loss, mean for a node: under which name it goes on,
 * whether its world goes on, and what it still believes. Without a register the record ends for the
 * node with its connection. With one the job goes on at another host: the node keeps its name and a
 * world that is committed. */

/* After a new connection the node has a new name. Where no host serves presence, only this node
 * knows that the node of its old name is gone. A host may be told so before it is connected. */
static void rename_node(struct rendezvous_machine *machine) {
    if (!machine->connection.has_presence || machine->connection.is_host) {
        failure_detector_note(&machine->detector, &machine->view.me, false);
    }
    rendezvous_view_rename(&machine->view, record_connection_draw_local_id(&machine->connection));
    rendezvous_place_give_up(&machine->place, RENDEZVOUS_NO_ROUND);
}

/* The store of another host has what is committed. This node is in the same world, as far as it
 * knows. What it has seen since, it holds against a record that is earlier; but what a host has
 * told it is no record. */
static void stay_in_job(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    if (machine->settings.delegates) {
        rendezvous_view_begin(&machine->view);
        machine->view.is_name_kept = true;
    }
    rendezvous_failure_forget_roll(&machine->failure, step->event->now,
        rendezvous_failure_patience(&machine->settings, machine->connection.has_presence));
    if (machine->place.is_in_world) {
        rendezvous_patience_end(&machine->patience);
    }
}

/* The host has found the former connection ended, and takes the node of that one out. */
static void come_again(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    if (machine->purpose.goal == RENDEZVOUS_GOAL_TAKE_PART) {
        rendezvous_end_world(step, "this node has lost its connection, and its place with it");
    }
    rendezvous_view_begin(&machine->view);
    rename_node(machine);
}

/* Takes the event CONNECTED. */
static void rendezvous_connection_take(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    const struct rendezvous_event *event = step->event;
    bool had_connection = machine->connection.was_open;
    bool is_other_store =
        machine->has_succession && !(machine->settings.delegates &&
                                       event->connected.is_same_store && !event->connected.is_host);
    if (machine->purpose.goal == RENDEZVOUS_GOAL_OVER ||
        !record_connection_open(&machine->connection, event->connected.has_presence,
            event->connected.is_host, event->now, machine->settings.keep_alive_interval)) {
        return;
    }
    if (had_connection && is_other_store) {
        stay_in_job(step);
    } else if (had_connection) {
        come_again(step);
    } else {
        rendezvous_view_begin(&machine->view);
    }
    rendezvous_wishing_begin(step);
    rendezvous_step_present(step);
}

/* A host that was heard while the node tried is not gone, although the node could not connect until
 * the deadline. It is gone if it has refused: then the deadline has not come yet. */
static bool is_host_there(const struct rendezvous_step *step) {
    const struct rendezvous_machine *machine = step->machine;
    struct instant now = step->event->now;
    return step->event->lost.was_heard && machine->connection.was_open &&
           !instant_is_before(now, machine->connection.given_up_at) &&
           instant_is_before(now, machine->patience.join_deadline.at);
}

static void lose_record(struct rendezvous_step *step, bool was_open) {
    struct rendezvous_machine *machine = step->machine;
    const char *reason = step->event->lost.reason;
    rendezvous_end_world(step, reason);
    rendezvous_patience_begin(&machine->patience, step->event->now, machine->settings.join_timeout);
    bool may_be_there = !machine->connection.is_host || step->event->lost.is_own_doing;
    if ((was_open || is_host_there(step)) && may_be_there) {
        rendezvous_connect_again(step);
    } else {
        rendezvous_fail(step, reason);
    }
}

/* Unless its nodes have exchanged what their workers need, the round may never have been committed,
 * and the next host, which knows nothing of it, may begin another one of its number. So no two
 * rounds are taken for one, it is given up. */
static void give_up_begun_world(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    if (!machine->place.is_placed && machine->purpose.goal == RENDEZVOUS_GOAL_TAKE_PART) {
        rendezvous_end_world(step, "the host of the job's store was lost when the round began");
    }
}

/* The world goes on. Who was gone is known to the host, and the next one finds out anew. So it does
 * what the others wish: they say it again. */
static void seek_host(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    failure_detector_forget_all(&machine->detector, step->event->lost.keeps_hosting);
    if (!step->event->lost.keeps_hosting) {
        rendezvous_delegates_clear(&machine->delegates);
        give_up_begun_world(step);
    }
    rendezvous_finish_forget_count(&machine->finish);
    if (machine->purpose.goal != RENDEZVOUS_GOAL_NONE &&
        machine->purpose.goal != RENDEZVOUS_GOAL_OVER) {
        rendezvous_patience_begin(
            &machine->patience, step->event->now, machine->settings.join_timeout);
        rendezvous_connect_again(step);
    }
}

/* Takes the event CONNECTION_LOST. */
static void rendezvous_connection_lose(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    bool was_open = record_connection_close(&machine->connection);
    if (step->event->lost.is_host_sought) {
        seek_host(step);
        return;
    }
    rendezvous_failure_end(&machine->failure);
    if (!machine->connection
             .is_host) { /* a host is told of each loss once, whatever its own connection */
        failure_detector_forget_all(&machine->detector, false);
    }
    switch (machine->purpose.goal) {
    case RENDEZVOUS_GOAL_TAKE_PART:
        lose_record(step, was_open);
        break;
    case RENDEZVOUS_GOAL_CLOSE:
    case RENDEZVOUS_GOAL_LEAVE:
        rendezvous_settle(step);
        break;
    case RENDEZVOUS_GOAL_NONE:
    case RENDEZVOUS_GOAL_OVER:
    case RENDEZVOUS_GOAL_COUNT:
        break;
    }
}

/* Machine. */

static void ask_join(struct rendezvous_step *step);
static void ask_restart(struct rendezvous_step *step);
static void ask_failure(struct rendezvous_step *step);
static void note_warmed(struct rendezvous_step *step);
static void note_opened(struct rendezvous_step *step);
static void note_placed(struct rendezvous_step *step);
static void ask_done(struct rendezvous_step *step);
static void ask_close(struct rendezvous_step *step);
static void ask_leave(struct rendezvous_step *step);
static void take_record(struct rendezvous_step *step);
static void take_written(struct rendezvous_step *step);
static void take_changed(struct rendezvous_step *step);
static void take_strangers_write(struct rendezvous_step *step);
static void take_gone(struct rendezvous_step *step);
static void take_wish(struct rendezvous_step *step);
static void take_finished_count(struct rendezvous_step *step);
static void take_roll(struct rendezvous_step *step);
static void take_broken(struct rendezvous_step *step);
static void take_fence(struct rendezvous_step *step);
static void take_register(struct rendezvous_step *step);
static void take_timer(struct rendezvous_step *step);

/* The succession machine has taken it. */
static void ignore(struct rendezvous_step *step) {
    (void)step;
}

static void (*const handlers[RENDEZVOUS_EVENT_KIND_COUNT])(struct rendezvous_step *step) = {
    [RENDEZVOUS_EVENT_JOIN_ASKED] = ask_join,
    [RENDEZVOUS_EVENT_RESTART_ASKED] = ask_restart,
    [RENDEZVOUS_EVENT_FAILURE_ASKED] = ask_failure,
    [RENDEZVOUS_EVENT_WARMED] = note_warmed,
    [RENDEZVOUS_EVENT_OPENED] = note_opened,
    [RENDEZVOUS_EVENT_PLACED] = note_placed,
    [RENDEZVOUS_EVENT_DONE_ASKED] = ask_done,
    [RENDEZVOUS_EVENT_CLOSE_ASKED] = ask_close,
    [RENDEZVOUS_EVENT_LEAVE_ASKED] = ask_leave,
    [RENDEZVOUS_EVENT_CONNECTED] = rendezvous_connection_take,
    [RENDEZVOUS_EVENT_CONNECTION_LOST] = rendezvous_connection_lose,
    [RENDEZVOUS_EVENT_RECORD] = take_record,
    [RENDEZVOUS_EVENT_WRITTEN] = take_written,
    [RENDEZVOUS_EVENT_CHANGED] = take_changed,
    [RENDEZVOUS_EVENT_STRANGER_WROTE] = take_strangers_write,
    [RENDEZVOUS_EVENT_NODE_GONE] = take_gone,
    [RENDEZVOUS_EVENT_WISHED] = take_wish,
    [RENDEZVOUS_EVENT_STANDING] = rendezvous_wishing_take_standing,
    [RENDEZVOUS_EVENT_HOST_LEAVES] = ignore,
    [RENDEZVOUS_EVENT_FINISHED_COUNT] = take_finished_count,
    [RENDEZVOUS_EVENT_ROLL_ANSWERED] = take_roll,
    [RENDEZVOUS_EVENT_BROKEN] = take_broken,
    [RENDEZVOUS_EVENT_FENCED] = take_fence,
    [RENDEZVOUS_EVENT_REGISTER] = take_register,
    [RENDEZVOUS_EVENT_TIMER_FIRED] = take_timer,
};

struct rendezvous_machine *rendezvous_machine_new(
    const struct rendezvous_machine_settings *settings) {
    struct rendezvous_machine *machine = memory_allocate(sizeof *machine);
    machine->settings = settings->rendezvous;
    machine->role = settings->role;
    machine->has_succession = settings->has_succession;
    machine->view.me = settings->identity;
    machine->warming.patience = settings->warming_patience;
    record_connection_init(&machine->connection, settings->seed);
    rendezvous_place_init(&machine->place);
    rendezvous_failure_init(&machine->failure);
    rendezvous_growth_init(&machine->growth);
    return machine;
}

void rendezvous_machine_free(struct rendezvous_machine *machine) {
    if (machine == NULL) {
        return;
    }
    rendezvous_view_clear(&machine->view);
    rendezvous_place_clear(&machine->place);
    failure_detector_clear(&machine->detector);
    rendezvous_delegates_clear(&machine->delegates);
    free(machine);
}

bool rendezvous_machine_is_in_round(const struct rendezvous_machine *machine) {
    return machine->view.seen.is_complete && rendezvous_view_is_participant(&machine->view);
}

void rendezvous_machine_list_unready(
    const struct rendezvous_machine *machine, struct text_list *out_names) {
    if (rendezvous_delegates_hold(&machine->delegates, machine->view.seen.round)) {
        rendezvous_delegates_list_unready(&machine->delegates, out_names);
    }
}

const struct rendezvous_state *rendezvous_machine_state(const struct rendezvous_machine *machine) {
    return &machine->view.seen;
}

struct rendezvous_admission rendezvous_machine_admission(
    const struct rendezvous_machine *machine, struct instant now) {
    return rendezvous_growth_admission(&machine->growth, now, machine->settings.scale_up_interval);
}

enum rendezvous_parking rendezvous_machine_parking(const struct rendezvous_machine *machine) {
    const struct rendezvous_node *self = rendezvous_view_self(&machine->view);
    if (self == NULL || machine->view.seen.is_closed || machine->place.is_in_world) {
        return RENDEZVOUS_NOT_PARKED;
    }
    return self->is_redundant ? RENDEZVOUS_IS_SPARE
           : self->is_waiting ? RENDEZVOUS_WAITS_FOR_ROUND
                              : RENDEZVOUS_NOT_PARKED;
}

bool rendezvous_machine_may_be_missed(const struct rendezvous_machine *machine) {
    return !machine->connection.is_host || machine->view.seen.count > 1;
}

bool rendezvous_machine_has_host(const struct rendezvous_machine *machine) {
    return machine->connection.has_presence;
}

bool rendezvous_machine_is_host(const struct rendezvous_machine *machine) {
    return machine->connection.is_host;
}

const struct node_identity *rendezvous_machine_identity(const struct rendezvous_machine *machine) {
    return &machine->view.me;
}

/* Asked by the agent. */

static void ask_join(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    if (machine->purpose.goal == RENDEZVOUS_GOAL_OVER) {
        rendezvous_repeat_end(step);
        return;
    }
    rendezvous_place_ask_join(&machine->place);
    rendezvous_patience_begin(&machine->patience, step->event->now, machine->settings.join_timeout);
    if (machine->purpose.goal == RENDEZVOUS_GOAL_NONE) {
        machine->purpose.goal = RENDEZVOUS_GOAL_TAKE_PART;
        rendezvous_connect_until(step, machine->patience.join_deadline.at);
    }
}

static void ask_restart(struct rendezvous_step *step) {
    if (step->machine->place.is_in_world) {
        rendezvous_leave_world(step);
        rendezvous_failure_want_restart(&step->machine->failure, step->event->reason);
    }
}

/* Whether the loss of a node may have caused the failure. It may if the round is over already,
 * although the agent does not know it yet; or if the world has other nodes, all nodes are Muster's,
 * and the job heeds losses. */
static bool is_doubtful(const struct rendezvous_machine *machine) {
    const struct rendezvous_state *seen = &machine->view.seen;
    return seen->round != rendezvous_place_round(&machine->place) ||
           (rendezvous_state_participants(&machine->place.world) > 1 &&
               rendezvous_regroup_is_possible(seen) &&
               rendezvous_settings_heed_losses(&machine->settings));
}

/* Does nothing when the node is no longer in a world: the agent was told then that the round is
 * over. */
static void ask_failure(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    bool takes_part = machine->purpose.goal == RENDEZVOUS_GOAL_TAKE_PART;
    if (takes_part && !machine->place.is_in_world) {
        return;
    }
    rendezvous_failure_note(&machine->failure, step->event->reason);
    bool may_be_known =
        record_connection_is_open(&machine->connection) || rendezvous_is_host_sought(step);
    if (takes_part && may_be_known && is_doubtful(machine)) {
        rendezvous_failure_doubt(&machine->failure, step->event->now,
            rendezvous_failure_patience(&machine->settings, machine->connection.has_presence));
    } else {
        rendezvous_let_failure_stand(step);
    }
}

static void note_warmed(struct rendezvous_step *step) {
    rendezvous_warming_finish(&step->machine->warming);
}

static void note_opened(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    rendezvous_place_note_opened(&machine->place, step->event->opened.round,
        step->event->opened.address, step->event->opened.port);
    rendezvous_delegates_note_meeting(
        &machine->delegates, &machine->view.me, &machine->place.meeting);
}

static void note_placed(struct rendezvous_step *step) {
    rendezvous_place_note_placed(&step->machine->place);
}

static void ask_done(struct rendezvous_step *step) {
    if (step->machine->place.is_in_world) {
        rendezvous_finish_enter(&step->machine->finish);
        rendezvous_step_present(step);
    }
}

static void ask_close(struct rendezvous_step *step) {
    struct rendezvous_purpose *purpose = &step->machine->purpose;
    snprintf(purpose->message, sizeof purpose->message, "%s", step->event->reason);
    purpose->signal = step->event->signal;
    rendezvous_end_part(step, RENDEZVOUS_GOAL_CLOSE);
}

static void ask_leave(struct rendezvous_step *step) {
    step->machine->purpose.signal = step->event->signal;
    rendezvous_delegates_note_leaving(&step->machine->delegates, step->event->now);
    rendezvous_end_part(step, RENDEZVOUS_GOAL_LEAVE);
}

/* Told by the backend. */

/* The others are in a later round. What comes of a record that is read next is the same. */
static void end_world_of_others(struct rendezvous_step *step) {
    const struct rendezvous_place *place = &step->machine->place;
    const struct rendezvous_view *view = &step->machine->view;
    char reason[RENDEZVOUS_MESSAGE_SIZE];
    if (place->is_in_world &&
        rendezvous_state_ordinal(&view->seen) > rendezvous_state_ordinal(&place->world)) {
        rendezvous_place_explain_end(place, view, reason, sizeof reason);
        rendezvous_end_world(step, reason);
    }
}

/* A node that was taken out of the record is known to be gone under the name that it had. No worker
 * of it starts any more in the world in which it had that name. */
static void rename_if_taken_out(struct rendezvous_step *step, bool was_listed) {
    struct rendezvous_machine *machine = step->machine;
    bool may_be_gone = was_listed || machine->view.is_name_kept;
    machine->view.is_name_kept = false;
    if (machine->has_succession && may_be_gone && rendezvous_view_self(&machine->view) == NULL &&
        machine->purpose.goal == RENDEZVOUS_GOAL_TAKE_PART) {
        end_world_of_others(step);
        rendezvous_view_rename(
            &machine->view, record_connection_draw_local_id(&machine->connection));
        rendezvous_step_present(step);
    }
}

/* One node tells the watchers news which were perhaps not announced: torchrun's nodes do not
 * announce what they write, and a node of Muster may die between its write and its announcement. */
static void see(struct rendezvous_step *step, const struct rendezvous_state *state_or_null) {
    struct rendezvous_machine *machine = step->machine;
    if (rendezvous_step_acts_for_all(machine) &&
        rendezvous_view_is_news(&machine->view, state_or_null)) {
        record_connection_note_news(&machine->connection);
    }
    bool was_listed = machine->view.has_record && rendezvous_view_self(&machine->view) != NULL;
    rendezvous_delegates_note_record(&machine->delegates);
    rendezvous_view_see(&machine->view, state_or_null, step->event->has_traces);
    rename_if_taken_out(step, was_listed);
}

static void take_record(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    if (!record_connection_is_fetching(&machine->connection)) {
        return;
    }
    see(step, step->event->state);
    if (record_connection_end_fetch(&machine->connection)) {
        rendezvous_step_push_kind(step, RENDEZVOUS_EFFECT_TELL_WATCHERS);
    }
}

static void take_written(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    if (!record_connection_is_writing(&machine->connection)) {
        return;
    }
    if (step->event->written.has_won) {
        rendezvous_view_adopt_draft(&machine->view);
        rendezvous_delegates_note_record(&machine->delegates);
        record_connection_win_write(&machine->connection, step->event->now,
            rendezvous_heartbeat_interval(machine), machine->settings.keep_alive_interval);
    } else {
        see(step, step->event->written.state);
        record_connection_lose_write(&machine->connection, step->event->now);
    }
}

static void take_changed(struct rendezvous_step *step) {
    record_connection_note_change(&step->machine->connection, true);
}

/* A node without presence does not announce its write, so the watchers still have to be told. */
static void take_strangers_write(struct rendezvous_step *step) {
    record_connection_note_change(&step->machine->connection, false);
}

static void take_gone(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    const struct node_identity *gone = &step->event->gone.identity;
    if (!node_identity_equals(gone, &machine->view.me)) {
        failure_detector_note(&machine->detector, gone, step->event->gone.has_finished);
        rendezvous_delegates_forget(&machine->delegates, gone);
        /* This node may not have seen the last write of the lost node yet. */
        record_connection_note_change(&machine->connection, false);
    }
}

/* Whoever shows itself may stand in the record already, and wait to be let in. */
static bool was_awaited(const struct rendezvous_step *step) {
    const struct rendezvous_state *seen = &step->machine->view.seen;
    const struct rendezvous_node *node =
        seen->is_complete ? rendezvous_state_find(seen, &step->event->wished.identity) : NULL;
    return node != NULL && node->is_awaited;
}

static void take_wish(struct rendezvous_step *step) {
    failure_detector_hear(&step->machine->detector, &step->event->wished.identity);
    step->is_idle = !rendezvous_serving_hear(step) && !was_awaited(step) &&
                    !step->machine->delegates.is_record_news;
    step->is_held = rendezvous_serving_gathers(step);
}

static void take_finished_count(struct rendezvous_step *step) {
    rendezvous_finish_take_count(&step->machine->finish, step->event->finished_count);
}

static void take_roll(struct rendezvous_step *step) {
    rendezvous_failure_take_roll(&step->machine->failure);
}

static void take_broken(struct rendezvous_step *step) {
    switch (step->machine->purpose.goal) {
    case RENDEZVOUS_GOAL_TAKE_PART:
        rendezvous_fail(step, step->event->reason);
        break;
    case RENDEZVOUS_GOAL_NONE:
    case RENDEZVOUS_GOAL_CLOSE:
    case RENDEZVOUS_GOAL_LEAVE:
        rendezvous_settle(step);
        break;
    case RENDEZVOUS_GOAL_OVER:
    case RENDEZVOUS_GOAL_COUNT:
        break;
    }
}

static void take_fence(struct rendezvous_step *step) {
    if (step->machine->purpose.goal == RENDEZVOUS_GOAL_TAKE_PART) {
        rendezvous_end_world(step, step->event->reason);
    }
}

static void take_register(struct rendezvous_step *step) {
    step->machine->is_register_stuck = step->event->is_register_stuck;
}

/* Every event makes time pass, so the timer needs no handling of its own. */
static void take_timer(struct rendezvous_step *step) {
    (void)step;
}

/* After every event. */

static void let_time_pass(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    struct instant now = step->event->now;
    record_connection_end_pause(&machine->connection, now);
    if (machine->purpose.goal != RENDEZVOUS_GOAL_OVER &&
        rendezvous_patience_has_ended(&machine->patience, now)) {
        rendezvous_settle(step);
    }
    rendezvous_wishing_let_time_pass(step);
}

static void beat(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    struct duration interval = machine->delegating.is_on
                                   ? rendezvous_settings_beat(&machine->settings)
                                   : machine->settings.keep_alive_interval;
    if (record_connection_beat(&machine->connection, step->event->now, interval)) {
        rendezvous_finish_forget_count(&machine->finish);
        rendezvous_step_push_kind(step, RENDEZVOUS_EFFECT_BEAT);
    }
}

static void fetch(struct rendezvous_step *step) {
    record_connection_fetch(&step->machine->connection, step->event->now);
    rendezvous_step_push_kind(step, RENDEZVOUS_EFFECT_FETCH);
}

static void use_link(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    const struct record_connection *connection = &machine->connection;
    if (connection->phase == RECORD_CONNECTION_READY && connection->is_refetch_wanted) {
        fetch(step);
    }
    if (connection->phase == RECORD_CONNECTION_READY && machine->view.has_record) {
        rendezvous_evaluate(step);
    }
    /* Where a register decides who hosts the store, torchrun's nodes are turned away. */
    bool has_foreign =
        !machine->has_succession && rendezvous_state_has_foreign_node(&machine->view.seen);
    if (machine->purpose.goal != RENDEZVOUS_GOAL_OVER &&
        record_connection_is_poll_due(connection, has_foreign, step->event->now)) {
        fetch(step);
    }
}

/* Whether there is anything left to do for this node, or for others. */
static bool is_to_act(const struct rendezvous_machine *machine) {
    return machine->purpose.goal != RENDEZVOUS_GOAL_OVER || rendezvous_serving_outlasts(machine);
}

static void arm_timer(struct rendezvous_step *step) {
    const struct rendezvous_machine *machine = step->machine;
    struct instant now = step->event->now;
    struct moment next = {0};
    bool is_active = is_to_act(machine);
    if (is_active) {
        record_connection_wake(&machine->connection, now, &next);
    }
    if (is_active && record_connection_is_open(&machine->connection)) {
        rendezvous_patience_wake(&machine->patience, now, &next);
        rendezvous_failure_wake(&machine->failure, now, &next);
        rendezvous_warming_wake(&machine->warming, now, &next);
        rendezvous_growth_wake(&machine->growth, now, &next);
        rendezvous_gathering_wake(&machine->delegates.gathering, now, &next);
        moment_wake(&machine->delegates.leaving_until, now, &next);
    }
    if (next.is_set) {
        rendezvous_step_push(step,
            (struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_ARM_TIMER, .deadline = next.at});
    }
}

void rendezvous_machine_step(struct rendezvous_machine *machine,
    const struct rendezvous_event *event, struct rendezvous_effects *effects) {
    effects->count = 0;
    struct rendezvous_step step = {.machine = machine, .event = event, .effects = effects};
    rendezvous_delegates_begin(&machine->delegates);
    handlers[event->kind](&step);
    if (step.is_idle) {
        return;
    }
    let_time_pass(&step);
    rendezvous_serving_tell(&step);
    if (is_to_act(machine)) {
        beat(&step);
        rendezvous_tell_waiting(&step);
        if (!step.is_held) {
            use_link(&step);
        }
        rendezvous_release_world(&step);
        rendezvous_wishing_say(&step);
    }
    rendezvous_serving_tell(&step);
    arm_timer(&step);
}
