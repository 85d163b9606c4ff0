/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous/rendezvous_view.h"

static const struct rendezvous_state absent;

void rendezvous_view_clear(struct rendezvous_view *view) {
    rendezvous_state_clear(&view->seen);
    rendezvous_state_clear(&view->draft);
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
    view->has_record = true;
    note_round(view);
}

void rendezvous_view_be_told(struct rendezvous_view *view, const struct rendezvous_state *state) {
    rendezvous_state_copy(state, &view->seen);
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
    view->is_lost = false;
    view->is_anew = false;
    note_round(view);
}

const struct rendezvous_node *rendezvous_view_self(const struct rendezvous_view *view) {
    return rendezvous_state_find(&view->seen, &view->me);
}

bool rendezvous_view_is_participant(const struct rendezvous_view *view) {
    return rendezvous_state_is_participant(&view->seen, &view->me);
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
