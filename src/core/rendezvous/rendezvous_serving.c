/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous/rendezvous_serving.h"

#include <stdlib.h>

#include "base/memory.h"
#include "core/rendezvous/rendezvous_decision.h"
#include "core/rendezvous/rendezvous_evaluation.h"
#include "core/rendezvous/rendezvous_regroup.h"

static bool is_over(const struct rendezvous_machine *machine) {
    return machine->purpose.goal == RENDEZVOUS_GOAL_OVER;
}

/* Whether the delegates are to write the record themselves. Where another node comes to host the
 * store, this one serves them as long as it hosts. */
static bool is_withdrawn(const struct rendezvous_machine *machine) {
    const struct rendezvous_state *seen = &machine->view.seen;
    bool ends_before_them = is_over(machine) && !machine->has_succession &&
                            !(machine->view.has_record && seen->is_closed);
    return ends_before_them || rendezvous_state_has_foreign_node(seen);
}

bool rendezvous_serving_holds(const struct rendezvous_machine *machine) {
    const struct rendezvous_state *seen = &machine->view.seen;
    return rendezvous_state_is_ranked(seen) && !is_withdrawn(machine) &&
           rendezvous_delegates_hold(&machine->delegates, seen->round);
}

bool rendezvous_serving_outlasts(const struct rendezvous_machine *machine) {
    return is_over(machine) && machine->has_succession && machine->connection.is_host &&
           record_connection_is_open(&machine->connection) && machine->view.has_record &&
           !machine->view.seen.is_closed;
}

/* Telling. */

static void push_tellings(struct rendezvous_step *step, const struct rendezvous_crowd *crowd,
    size_t first, bool withdraws) {
    const struct rendezvous_machine *machine = step->machine;
    const struct rendezvous_delegates *delegates = &machine->delegates;
    if (delegates->telling_count > first) {
        rendezvous_step_push(
            step, (struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_TELL_STANDINGS,
                      .standings = {.record = &machine->view.seen,
                          .crowd = *crowd,
                          .items = &delegates->tellings[first],
                          .count = delegates->telling_count - first,
                          .is_withdrawn = withdraws}});
    }
}

/* A node that is about to host has seen the record of another host, perhaps a part of it. */
static bool has_word(const struct rendezvous_machine *machine) {
    const struct rendezvous_view *view = &machine->view;
    bool is_heard = !machine->has_succession || record_connection_is_open(&machine->connection);
    bool is_last_word = is_over(machine) && !machine->has_succession;
    return is_heard && (is_last_word || (view->has_record && !view->is_lost));
}

/* What a pass over the delegates tells. */
struct telling_pass {
    struct rendezvous_step *step;
    struct rendezvous_crowd crowd;
    struct node_table places; /* in the record */
    bool withdraws_all;
};

/* A node that was let go stays so: a later standing would take the place of that word, where the
 * node has not heard it yet. */
static bool is_let_go(const struct telling_pass *pass, const struct rendezvous_delegate *delegate) {
    return pass->withdraws_all || delegate->wish.kind == RENDEZVOUS_WISH_OWN;
}

/* Tells those who are let go, or all others. */
static void tell_those(const struct telling_pass *pass, bool are_let_go) {
    struct rendezvous_machine *machine = pass->step->machine;
    struct rendezvous_delegates *delegates = &machine->delegates;
    const struct rendezvous_state *seen = &machine->view.seen;
    size_t first = delegates->telling_count;
    for (size_t i = 0; i < delegates->count; i++) {
        struct rendezvous_delegate *delegate = &delegates->items[i];
        size_t place = node_table_find(&pass->places, &delegate->identity);
        bool is_to_come = delegate->wish.kind == RENDEZVOUS_WISH_JOIN &&
                          !delegate->told.is_anything && place == NODE_TABLE_ABSENT;
        bool is_due = are_let_go || !is_to_come || seen->is_closed;
        if (is_due && is_let_go(pass, delegate) == are_let_go) {
            rendezvous_delegates_tell(delegates, delegate, seen, &pass->crowd, place, are_let_go);
        }
    }
    push_tellings(pass->step, &pass->crowd, first, are_let_go);
}

static void tell_all(struct rendezvous_step *step) {
    const struct rendezvous_machine *machine = step->machine;
    struct telling_pass pass = {.step = step,
        .crowd = rendezvous_state_crowd(&machine->view.seen),
        .places = rendezvous_state_places(&machine->view.seen),
        .withdraws_all = is_withdrawn(machine)};
    rendezvous_gathering_look(&pass.step->machine->delegates.gathering, pass.crowd.participants);
    tell_those(&pass, false);
    tell_those(&pass, true);
    node_table_clear(&pass.places);
}

void rendezvous_serving_tell(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    struct rendezvous_delegates *delegates = &machine->delegates;
    bool is_end = is_over(machine) && !delegates->are_released;
    if ((!delegates->is_record_news && !is_end) || !has_word(machine)) {
        return;
    }
    delegates->is_record_news = false;
    delegates->are_released = is_over(machine);
    if (delegates->count > 0) {
        tell_all(step);
    }
}

/* A node that joins is told when it is in the record, so that it is told once. It is there already
 * when it comes from another host. */
static void answer(struct rendezvous_step *step, struct rendezvous_delegate *delegate) {
    struct rendezvous_machine *machine = step->machine;
    const struct rendezvous_state *seen = &machine->view.seen;
    bool wants_own = delegate->wish.kind == RENDEZVOUS_WISH_OWN;
    bool withdraws = wants_own || is_withdrawn(machine);
    if (!has_word(machine)) {
        return;
    }
    bool may_be_there = machine->has_succession && !delegate->told.is_anything;
    bool is_to_come = delegate->wish.kind == RENDEZVOUS_WISH_JOIN &&
                      !(may_be_there && rendezvous_state_find(seen, &delegate->identity) != NULL);
    bool awaits_write = is_to_come || rendezvous_wish_closes(&delegate->wish, seen->round);
    if (awaits_write && !withdraws && !seen->is_closed) {
        return;
    }
    struct rendezvous_crowd crowd = rendezvous_state_crowd(seen);
    const struct rendezvous_node *node = rendezvous_state_find(seen, &delegate->identity);
    size_t first = machine->delegates.telling_count;
    rendezvous_delegates_tell(&machine->delegates, delegate, seen, &crowd,
        node == NULL ? NODE_TABLE_ABSENT : (size_t)(node - seen->nodes), withdraws);
    push_tellings(step, &crowd, first, withdraws);
}

/* A node that came too late to a new host, or was a host before, is gone under the name that it has
 * kept. */
static void turn_away(struct rendezvous_step *step) {
    const struct rendezvous_event *event = step->event;
    if (step->machine->has_succession && event->wished.wish.kind != RENDEZVOUS_WISH_NONE) {
        rendezvous_step_push(step, (struct rendezvous_effect){.kind = RENDEZVOUS_EFFECT_CUT_OFF,
                                       .cut_off = event->wished.identity});
    }
}

bool rendezvous_serving_hear(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    const struct rendezvous_event *event = step->event;
    size_t count = machine->delegates.count;
    bool is_gone = failure_detector_has_noted(&machine->detector, &event->wished.identity);
    if (is_gone) {
        turn_away(step);
    }
    struct rendezvous_delegate *delegate = is_gone
                                               ? NULL
                                               : rendezvous_delegates_hear(&machine->delegates,
                                                     &event->wished.identity, &event->wished.wish);
    if (delegate != NULL) {
        rendezvous_gathering_hear(&machine->delegates.gathering,
            count < machine->delegates.count && delegate->wish.kind == RENDEZVOUS_WISH_JOIN,
            &machine->view.seen, event->now);
        if (delegate->wish.kind == RENDEZVOUS_WISH_LEAVE) {
            rendezvous_delegates_note_leaving(&machine->delegates, event->now);
        }
        answer(step, delegate);
    }
    return delegate != NULL;
}

/* Ranking. */

static struct node_role role_of(
    const struct rendezvous_machine *machine, const struct node_identity *identity) {
    if (!node_identity_equals(identity, &machine->view.me)) {
        return rendezvous_delegates_role(&machine->delegates, identity);
    }
    return machine->role;
}

/* The nodes may begin at once only if no worker of an earlier round runs on any of them. */
static void note_ranked(struct rendezvous_machine *machine) {
    const struct rendezvous_state *draft = &machine->view.draft;
    for (size_t i = 0; i < draft->count; i++) {
        const struct rendezvous_node *node = &draft->nodes[i];
        if (!node->is_participant) {
            continue;
        }
        if (node_identity_equals(&node->identity, &machine->view.me)) {
            rendezvous_delegates_note_ranked_host(
                &machine->delegates, machine->place.world.round == RENDEZVOUS_NO_ROUND);
        } else {
            rendezvous_delegates_note_ranked(&machine->delegates, &node->identity);
        }
    }
}

static bool rank_draft(struct rendezvous_machine *machine) {
    const struct rendezvous_state *draft = &machine->view.draft;
    size_t count = rendezvous_state_participants(draft);
    struct node_role *roles = memory_allocate((count + 1) * sizeof *roles);
    const struct node_identity *first = &machine->view.me;
    for (size_t i = 0; i < draft->count; i++) {
        const struct rendezvous_node *node = &draft->nodes[i];
        if (node->is_participant && node->rank >= 0 && (uint64_t)node->rank < count) {
            roles[node->rank] = role_of(machine, &node->identity);
            first = node->rank == 0 ? &node->identity : first;
        }
    }
    bool is_ranked =
        rendezvous_ranking_compute(&machine->delegates.ranking, draft->round, roles, count);
    rendezvous_delegates_note_ranking(&machine->delegates, first);
    note_ranked(machine);
    free(roles);
    return is_ranked;
}

void rendezvous_serving_rank(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    const struct rendezvous_state *seen = &machine->view.seen;
    struct rendezvous_state *draft = &machine->view.draft;
    bool begins = draft->is_complete && !draft->is_closed &&
                  (!seen->is_complete || seen->round != draft->round);
    if (begins && machine->delegates.count > 0) {
        draft->ranked = !is_withdrawn(machine) && rank_draft(machine) ? draft->round + 1 : 0;
    }
}

/* Writing. */

/* What a pass works with. */
struct pass {
    struct rendezvous_step *step;
    const struct rendezvous_delegates *delegates;
    const struct rendezvous_state *seen;
    struct node_table places; /* in `seen` */
};

static const struct rendezvous_node *find(
    const struct pass *pass, const struct rendezvous_delegate *delegate) {
    size_t place = node_table_find(&pass->places, &delegate->identity);
    return place == NODE_TABLE_ABSENT ? NULL : &pass->seen->nodes[place];
}

static bool close_for_them(const struct pass *pass) {
    for (size_t i = 0; i < pass->delegates->count; i++) {
        const struct rendezvous_wish *wish = &pass->delegates->items[i].wish;
        if (rendezvous_wish_closes(wish, pass->seen->round)) {
            struct rendezvous_state *draft = rendezvous_draft_begin(pass->step);
            draft->is_closed = true;
            draft->has_failed = wish->reason[0] != '\0';
            rendezvous_regroup_explain(draft, wish->reason);
            draft->signal = wish->signal;
            return rendezvous_draft_write(pass->step, false);
        }
    }
    return false;
}

static bool take_out_those_who_leave(const struct pass *pass) {
    struct rendezvous_leaving leaving = {0};
    struct node_identity *identities = NULL;
    size_t capacity = 0;
    for (size_t i = 0; i < pass->delegates->count; i++) {
        const struct rendezvous_delegate *delegate = &pass->delegates->items[i];
        const struct rendezvous_node *node = find(pass, delegate);
        if (delegate->wish.kind != RENDEZVOUS_WISH_LEAVE || node == NULL) {
            continue;
        }
        identities = memory_reserve(identities, &capacity, leaving.count + 1, sizeof *identities);
        identities[leaving.count++] = delegate->identity;
        if (node->is_participant && leaving.first_participant == NULL) {
            leaving.first_participant = &node->identity;
            leaving.signal = delegate->wish.signal;
        }
    }
    leaving.identities = identities;
    bool has_written = rendezvous_let_leave(pass->step, &leaving);
    free(identities);
    return has_written;
}

/* Of several nodes whose workers failed in a round, one ends it, and one restart is charged. */
static bool end_round_for_them(const struct pass *pass) {
    const struct rendezvous_wish *chosen = NULL;
    const struct node_identity *culprit = NULL;
    if (!rendezvous_regroup_is_possible(pass->seen)) {
        return false;
    }
    for (size_t i = 0; i < pass->delegates->count; i++) {
        const struct rendezvous_wish *wish = &pass->delegates->items[i].wish;
        const struct rendezvous_node *node = find(pass, &pass->delegates->items[i]);
        bool ends = wish->kind == RENDEZVOUS_WISH_JOIN && wish->ended_round == pass->seen->round &&
                    node != NULL && node->is_participant;
        if (ends && (chosen == NULL || (wish->is_charged && !chosen->is_charged))) {
            chosen = wish;
            culprit = &pass->delegates->items[i].identity;
        }
    }
    return chosen != NULL &&
           rendezvous_renew(pass->step,
               (struct rendezvous_regroup){
                   .is_charged = chosen->is_charged, .culprit = culprit, .reason = chosen->reason});
}

/* Returns whether the draft has changed. */
static bool mark(const struct pass *pass, struct rendezvous_state *draft) {
    bool was_doubted = draft->is_doubted;
    bool was_draining = draft->is_draining;
    if (!rendezvous_regroup_is_possible(pass->seen)) {
        return false;
    }
    for (size_t i = 0; i < pass->delegates->count; i++) {
        const struct rendezvous_wish *wish = &pass->delegates->items[i].wish;
        draft->is_doubted = draft->is_doubted || wish->doubted_round == draft->round;
        draft->is_draining = draft->is_draining || wish->finished_round == draft->round;
    }
    return draft->is_doubted != was_doubted || draft->is_draining != was_draining;
}

/* The node does not know yet that the round goes on without it. */
static bool is_excluded(const struct rendezvous_settings *settings,
    const struct rendezvous_wish *wish, const struct rendezvous_state *draft) {
    return settings->exclude_after > 0 && wish->is_charged && wish->ended_round >= 0 &&
           wish->ended_round < draft->round && rendezvous_regroup_is_because(draft, wish->reason);
}

/* Lets one node in. Returns whether the draft has changed. */
static bool let_in(const struct pass *pass, const struct rendezvous_delegate *delegate,
    struct rendezvous_state *draft) {
    const struct rendezvous_settings *settings = &pass->step->machine->settings;
    const struct rendezvous_node *node = find(pass, delegate);
    if (delegate->wish.kind != RENDEZVOUS_WISH_JOIN || (node != NULL && !node->is_redundant) ||
        (node == NULL && is_excluded(settings, &delegate->wish, draft))) {
        return false;
    }
    struct rendezvous_context context = {
        .node = &delegate->identity, .state = draft, .settings = settings};
    enum rendezvous_action action = rendezvous_decide_join(&context);
    bool changes = action == RENDEZVOUS_ADD_TO_PARTICIPANTS ||
                   action == RENDEZVOUS_ADD_TO_WAIT_LIST ||
                   action == RENDEZVOUS_ADD_TO_REDUNDANCY_LIST ||
                   action == RENDEZVOUS_REMOVE_FROM_REDUNDANCY_LIST;
    if (changes) {
        rendezvous_apply(draft, settings, &delegate->identity, action, pass->step->event->wall_now);
    }
    return changes;
}

static bool let_in_and_mark(const struct pass *pass) {
    const struct rendezvous_settings *settings = &pass->step->machine->settings;
    struct rendezvous_state *draft = rendezvous_draft_begin(pass->step);
    bool has_changed = mark(pass, draft);
    for (size_t i = 0; i < pass->delegates->count; i++) {
        has_changed = let_in(pass, &pass->delegates->items[i], draft) || has_changed;
    }
    if (!has_changed) {
        return false;
    }
    if (draft->wanted > 0) {
        draft->has_deadline = false; /* the round waits for so many, and has no last call */
    }
    (void)rendezvous_regroup_settle(draft, settings, false);
    rendezvous_regroup_park(draft, settings);
    return rendezvous_draft_write(pass->step, false);
}

bool rendezvous_serving_gathers(const struct rendezvous_step *step) {
    const struct rendezvous_machine *machine = step->machine;
    return rendezvous_gathering_holds(
        &machine->delegates.gathering, &machine->view.seen, &machine->settings, step->event->now);
}

bool rendezvous_serve(struct rendezvous_step *step) {
    struct rendezvous_machine *machine = step->machine;
    struct rendezvous_delegates *delegates = &machine->delegates;
    if (delegates->count == 0 || delegates->are_served || is_withdrawn(machine) ||
        rendezvous_serving_gathers(step)) {
        return false;
    }
    if (rendezvous_gathering_end(&delegates->gathering, step->event->now) &&
        machine->view.seen.is_complete) {
        rendezvous_growth_note_gathered(&machine->growth);
    }
    struct pass pass = {.step = step, .delegates = delegates, .seen = &machine->view.seen};
    pass.places = rendezvous_state_places(pass.seen);
    bool has_written = close_for_them(&pass) || take_out_those_who_leave(&pass) ||
                       end_round_for_them(&pass) || let_in_and_mark(&pass);
    node_table_clear(&pass.places);
    delegates->are_served = !has_written;
    return has_written;
}

bool rendezvous_serving_holds_back(const struct rendezvous_step *step) {
    const struct rendezvous_machine *machine = step->machine;
    return machine->has_succession && machine->connection.is_host &&
           rendezvous_delegates_are_leaving(&machine->delegates, step->event->now);
}
