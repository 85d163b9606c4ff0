/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous/rendezvous_member.h"

#include <stdio.h>

#include "core/rendezvous/rendezvous_regroup.h"
#include "core/telling/round_reason.h"

static const struct rendezvous_state absent;

void rendezvous_view_clear(struct rendezvous_view *view) {
    rendezvous_state_clear(&view->seen);
    rendezvous_state_clear(&view->draft);
}

static void look_for_self(struct rendezvous_view *view) {
    const struct rendezvous_node *self = rendezvous_state_find(&view->seen, &view->me);
    view->self_place = self == NULL ? NODE_TABLE_ABSENT : (size_t)(self - view->seen.nodes);
    view->is_self_known = true;
}

void rendezvous_view_begin(struct rendezvous_view *view) {
    view->has_record = false;
    view->is_lost = false;
    view->is_anew = false;
}

void rendezvous_view_rename(struct rendezvous_view *view, int64_t local_id) {
    view->me.local_id = node_identity_is_muster(&view->me)
                            ? local_id
                            : node_identity_foreign_local_id((uint32_t)local_id);
    look_for_self(view);
}

static bool is_on_same_lists(
    const struct rendezvous_node *node, const struct rendezvous_state *state, size_t place) {
    return place != NODE_TABLE_ABSENT &&
           node->is_participant == state->nodes[place].is_participant &&
           node->is_waiting == state->nodes[place].is_waiting &&
           node->is_redundant == state->nodes[place].is_redundant;
}

/* Whether both records have the same round and the same lists. Heartbeats do not count. */
static bool is_same_but_for_heartbeats(
    const struct rendezvous_state *left, const struct rendezvous_state *right) {
    if (left->round != right->round || left->is_complete != right->is_complete ||
        left->is_closed != right->is_closed || left->count != right->count) {
        return false;
    }
    struct node_table places = rendezvous_state_places(right);
    size_t same = 0;
    while (same < left->count && is_on_same_lists(&left->nodes[same], right,
                                     node_table_find(&places, &left->nodes[same].identity))) {
        same++;
    }
    node_table_clear(&places);
    return same == left->count;
}

bool rendezvous_view_is_news(
    const struct rendezvous_view *view, const struct rendezvous_state *state_or_null) {
    const struct rendezvous_state *state = state_or_null != NULL ? state_or_null : &absent;
    return view->has_record && !is_same_but_for_heartbeats(&view->seen, state);
}

static void note_round(struct rendezvous_view *view) {
    int64_t ordinal = rendezvous_state_ordinal(&view->seen);
    if (view->seen.is_complete && ordinal >= view->next_ordinal) {
        view->next_ordinal = ordinal + 1;
    }
}

static bool is_absent(const struct rendezvous_state *state) {
    return state->count == 0 && state->round == 0 && state->origin == 0;
}

void rendezvous_view_see(
    struct rendezvous_view *view, const struct rendezvous_state *state_or_null, bool has_traces) {
    bool was_here = view->is_anew || (view->has_record && !is_absent(&view->seen));
    bool holds_place = view->has_record && rendezvous_view_self(view) != NULL;
    view->is_lost = holds_place && (state_or_null == NULL ||
                                       rendezvous_state_is_before(state_or_null, &view->seen));
    view->is_anew = !view->is_lost && (state_or_null == NULL || is_absent(state_or_null)) &&
                    (has_traces || was_here || view->next_ordinal > 0);
    if (!view->is_lost) {
        rendezvous_state_copy(state_or_null != NULL ? state_or_null : &absent, &view->seen);
    }
    look_for_self(view);
    view->has_record = true;
    note_round(view);
}

void rendezvous_view_be_told(struct rendezvous_view *view, const struct rendezvous_state *state) {
    rendezvous_state_copy(state, &view->seen);
    look_for_self(view);
    view->has_record = true;
    view->is_lost = false;
    view->is_anew = false;
    note_round(view);
}

struct rendezvous_state *rendezvous_view_begin_draft(struct rendezvous_view *view) {
    rendezvous_state_copy(&view->seen, &view->draft);
    return &view->draft;
}

bool rendezvous_view_may_miss_rounds(const struct rendezvous_view *view) {
    return view->is_anew || view->is_lost;
}

void rendezvous_view_count_on(struct rendezvous_view *view) {
    struct rendezvous_state *draft = &view->draft;
    bool is_of_round = view->seen.is_complete && view->seen.round == draft->round;
    if (!is_of_round && rendezvous_state_ordinal(draft) < view->next_ordinal) {
        draft->round = draft->base + view->next_ordinal;
    }
}

void rendezvous_view_adopt_draft(struct rendezvous_view *view) {
    rendezvous_state_clear(&view->seen);
    view->seen = view->draft;
    view->draft = (struct rendezvous_state){0};
    look_for_self(view);
    view->is_lost = false;
    view->is_anew = false;
    note_round(view);
}

const struct rendezvous_node *rendezvous_view_self(const struct rendezvous_view *view) {
    if (!view->is_self_known) {
        return rendezvous_state_find(&view->seen, &view->me);
    }
    return view->self_place == NODE_TABLE_ABSENT ? NULL : &view->seen.nodes[view->self_place];
}

bool rendezvous_view_is_participant(const struct rendezvous_view *view) {
    const struct rendezvous_node *self = rendezvous_view_self(view);
    return self != NULL && self->is_participant;
}

bool rendezvous_view_is_first(const struct rendezvous_view *view) {
    const struct rendezvous_node *self = rendezvous_view_self(view);
    if (self == NULL || !self->is_participant || !view->seen.is_complete) {
        return false;
    }
    if (view->seen.crowd.participants > 0) {
        return self->rank == 0;
    }
    for (size_t i = 0; i < view->seen.count; i++) {
        const struct rendezvous_node *other = &view->seen.nodes[i];
        if (other->is_participant && other->rank < self->rank) {
            return false;
        }
    }
    return true;
}

/* Place. */

void rendezvous_place_init(struct rendezvous_place *place) {
    *place = (struct rendezvous_place){
        .ended_round = RENDEZVOUS_NO_ROUND, .world = {.round = RENDEZVOUS_NO_ROUND}};
    rendezvous_place_say_nothing(place);
}

void rendezvous_place_clear(struct rendezvous_place *place) {
    rendezvous_state_clear(&place->world);
}

int64_t rendezvous_place_round(const struct rendezvous_place *place) {
    return place->is_in_world ? place->world.round : RENDEZVOUS_NO_ROUND;
}

void rendezvous_place_ask_join(struct rendezvous_place *place) {
    place->is_join_asked = true;
}

void rendezvous_place_enter(struct rendezvous_place *place, const struct rendezvous_state *world,
    bool opens_store, bool is_held) {
    rendezvous_state_copy(world, &place->world);
    place->is_in_world = true;
    place->is_placed = false;
    place->opens_store = opens_store;
    place->is_held = is_held;
    place->is_join_asked = false;
    if (is_held && !opens_store) {
        place->meeting = rendezvous_meeting_at(world->round, NULL, 0);
    }
}

void rendezvous_place_note_opened(
    struct rendezvous_place *place, int64_t round, const char *address, int port) {
    if (!place->is_in_world || !place->opens_store || place->world.round != round) {
        return;
    }
    place->meeting = rendezvous_meeting_at(round, address, port);
}

void rendezvous_place_release(struct rendezvous_place *place) {
    place->is_held = false;
}

void rendezvous_place_say_nothing(struct rendezvous_place *place) {
    place->meeting = (struct rendezvous_meeting){.round = RENDEZVOUS_WISH_NO_ROUND};
}

void rendezvous_place_note_placed(struct rendezvous_place *place) {
    place->is_placed = place->is_in_world;
}

void rendezvous_place_leave(struct rendezvous_place *place) {
    place->ended_round = place->world.round;
    place->is_in_world = false;
    place->is_held = false;
}

void rendezvous_place_give_up(struct rendezvous_place *place, int64_t round) {
    place->ended_round = round;
}

void rendezvous_place_look(struct rendezvous_place *place, const struct rendezvous_view *view) {
    const struct rendezvous_node *self = rendezvous_view_self(view);
    if (!view->seen.is_closed) {
        place->was_parked = self != NULL && (self->is_waiting || self->is_redundant);
    }
}

/* The missing node is found by comparing the record with the world: torchrun's nodes leave without
 * giving a reason, and a write that removes a node does not name it. A node that goes from one
 * round to the next is not in the record for a moment, or is on the wait list. */
void rendezvous_place_name_missing(const struct rendezvous_place *place,
    const struct rendezvous_state *seen, int64_t round, char *out, size_t size) {
    const struct rendezvous_state *world = &place->world;
    const struct rendezvous_node *missing = NULL;
    /* For any other round the world told last says nothing. */
    size_t count = world->round == round ? world->count : 0;
    struct node_table places = rendezvous_state_places(seen);
    for (size_t i = 0; i < count && missing == NULL; i++) {
        const struct rendezvous_node *node = &world->nodes[i];
        bool is_there = node_table_find(&places, &node->identity) != NODE_TABLE_ABSENT;
        missing = node->is_participant && !is_there ? node : NULL;
    }
    node_table_clear(&places);
    if (missing == NULL) {
        snprintf(out, size, "a node " ROUND_REASON_LEFT_THE_ROUND);
    } else {
        rendezvous_regroup_name_cause(&missing->identity, ROUND_REASON_LEFT_THE_ROUND, out, size);
    }
}

void rendezvous_place_explain_end(const struct rendezvous_place *place,
    const struct rendezvous_view *view, char *out, size_t size) {
    const struct rendezvous_state *seen = &view->seen;
    if (rendezvous_view_self(view) == NULL) {
        snprintf(out, size,
            "the others have taken this node out of the job, since they heard nothing of it");
    } else if (rendezvous_state_ordinal(seen) > rendezvous_state_ordinal(&place->world) &&
               seen->reason[0] != '\0') {
        snprintf(out, size, "%s", seen->reason);
    } else {
        rendezvous_place_name_missing(place, seen, place->world.round, out, size);
    }
}

/* Finish. */

void rendezvous_finish_enter(struct rendezvous_finish *finish) {
    finish->is_here = true;
}

void rendezvous_finish_leave(struct rendezvous_finish *finish) {
    finish->is_here = false;
}

bool rendezvous_finish_ask(struct rendezvous_finish *finish, int64_t round) {
    if (finish->is_count_known && finish->round == round) {
        return false;
    }
    finish->is_count_known = true;
    finish->round = round;
    finish->count = 1; /* until the store answers */
    return true;
}

void rendezvous_finish_take_count(struct rendezvous_finish *finish, int64_t count) {
    finish->is_count_known = true;
    finish->count = count;
}

void rendezvous_finish_forget_count(struct rendezvous_finish *finish) {
    finish->is_count_known = false;
}

bool rendezvous_finish_is_anywhere(const struct rendezvous_finish *finish) {
    return finish->count > 0;
}

/* Failure. */

#define NO_ROUND (-1)
/* How much longer than the silence timeout it takes until a machine is taken for gone
 * (core/store/connection_silence). */
#define SECOND_LOOK_SECONDS 2
/* The time that a busy machine may need to write the loss into the record and to read it. */
#define SLACK_SECONDS 2

void rendezvous_failure_init(struct rendezvous_failure *failure) {
    *failure = (struct rendezvous_failure){.answered_round = NO_ROUND};
}

void rendezvous_failure_want_restart(struct rendezvous_failure *failure, const char *reason) {
    rendezvous_failure_note(failure, reason);
    failure->stage = RENDEZVOUS_FAILURE_RESTART_WANTED;
}

void rendezvous_failure_note(struct rendezvous_failure *failure, const char *reason) {
    snprintf(failure->reason, sizeof failure->reason, "%s", reason);
}

void rendezvous_failure_doubt(
    struct rendezvous_failure *failure, struct instant now, struct duration patience) {
    failure->stage = RENDEZVOUS_FAILURE_DOUBTED;
    moment_set_after(&failure->doubt_deadline, now, patience);
}

void rendezvous_failure_end(struct rendezvous_failure *failure) {
    failure->stage = RENDEZVOUS_FAILURE_NONE;
    moment_clear(&failure->doubt_deadline);
}

bool rendezvous_failure_wants_restart(const struct rendezvous_failure *failure) {
    return failure->stage == RENDEZVOUS_FAILURE_RESTART_WANTED;
}

bool rendezvous_failure_is_doubted(const struct rendezvous_failure *failure) {
    return failure->stage >= RENDEZVOUS_FAILURE_DOUBTED;
}

bool rendezvous_failure_stands(const struct rendezvous_failure *failure, struct instant now) {
    return failure->stage == RENDEZVOUS_FAILURE_ROLL_ANSWERED ||
           moment_has_come(&failure->doubt_deadline, now);
}

bool rendezvous_failure_call_roll(struct rendezvous_failure *failure) {
    if (failure->stage != RENDEZVOUS_FAILURE_DOUBTED) {
        return false;
    }
    failure->stage = RENDEZVOUS_FAILURE_ROLL_CALLED;
    return true;
}

void rendezvous_failure_take_roll(struct rendezvous_failure *failure) {
    if (failure->stage == RENDEZVOUS_FAILURE_ROLL_CALLED) {
        failure->stage = RENDEZVOUS_FAILURE_ROLL_ANSWERED;
    }
}

void rendezvous_failure_forget_roll(
    struct rendezvous_failure *failure, struct instant now, struct duration patience) {
    failure->answered_round = NO_ROUND;
    if (rendezvous_failure_is_doubted(failure)) {
        rendezvous_failure_doubt(failure, now, patience);
    }
}

bool rendezvous_failure_answer_roll(
    struct rendezvous_failure *failure, const struct rendezvous_state *seen) {
    if (!seen->is_doubted || seen->round == failure->answered_round) {
        return false;
    }
    failure->answered_round = seen->round;
    failure->has_answered = true;
    return true;
}

struct duration rendezvous_failure_patience(
    const struct rendezvous_settings *settings, bool has_presence) {
    int64_t silence = has_presence ? settings->silence_timeout.nanoseconds +
                                         duration_from_seconds(SECOND_LOOK_SECONDS).nanoseconds
                                   : settings->keep_alive_interval.nanoseconds *
                                         (settings->keep_alive_max_attempt + 1);
    return (struct duration){silence + duration_from_seconds(SLACK_SECONDS).nanoseconds};
}

/* A record that was not begun anew has fewer restarts only if one was given back. */
static bool is_begun_anew(
    const struct rendezvous_failure *failure, const struct rendezvous_state *seen) {
    return failure->knows_restarts && seen->restarts < failure->restarts_seen &&
           seen->origin != failure->origin;
}

void rendezvous_failure_look(
    struct rendezvous_failure *failure, const struct rendezvous_state *seen, struct instant now) {
    if (is_begun_anew(failure, seen)) {
        return; /* until a node has corrected the record */
    }
    if (failure->knows_restarts && seen->restarts > failure->restarts_seen) {
        moment_set(&failure->charged_at, now);
    }
    failure->knows_restarts = true;
    failure->restarts_seen = seen->restarts;
    failure->origin = seen->origin;
}

int64_t rendezvous_failure_restarts(const struct rendezvous_failure *failure) {
    return failure->restarts_seen;
}

bool rendezvous_failure_may_be_consequence(const struct rendezvous_failure *failure,
    const struct rendezvous_state *seen, struct instant now, struct duration patience) {
    return seen->is_charged && failure->charged_at.is_set &&
           instant_until(failure->charged_at.at, now).nanoseconds <= patience.nanoseconds;
}

void rendezvous_failure_wake(
    const struct rendezvous_failure *failure, struct instant now, struct moment *next) {
    moment_wake(&failure->doubt_deadline, now, next);
}

/* Warming. */

/* torchrun's nodes keep no list of what to make ready. A job whose first workers are done lets
 * nobody in. */
static bool is_worth_it(const struct rendezvous_view *view) {
    const struct rendezvous_state *seen = &view->seen;
    return seen->is_complete && !seen->is_closed && !seen->is_draining &&
           rendezvous_state_participants(seen) > 0 &&
           !rendezvous_state_has_foreign_participant(seen) && rendezvous_view_self(view) == NULL;
}

bool rendezvous_warming_holds(struct rendezvous_warming *warming,
    const struct rendezvous_view *view, struct instant now, bool *out_begins) {
    *out_begins = false;
    if (warming->patience.nanoseconds == 0) {
        return false;
    }
    if (!is_worth_it(view) || moment_has_come(&warming->end, now)) {
        rendezvous_warming_finish(warming);
        return false;
    }
    if (!warming->end.is_set) {
        *out_begins = true;
        moment_set_after(&warming->end, now, warming->patience);
    }
    return true;
}

void rendezvous_warming_finish(struct rendezvous_warming *warming) {
    *warming = (struct rendezvous_warming){0};
}

void rendezvous_warming_wake(
    const struct rendezvous_warming *warming, struct instant now, struct moment *next) {
    moment_wake(&warming->end, now, next);
}
