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
}

void rendezvous_view_rename(struct rendezvous_view *view, int64_t local_id) {
    view->me.local_id = local_id;
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
    if (view->seen.is_complete && view->seen.round >= view->next_round) {
        view->next_round = view->seen.round + 1;
    }
}

void rendezvous_view_see(
    struct rendezvous_view *view, const struct rendezvous_state *state_or_null) {
    bool holds_place = view->has_record && rendezvous_view_self(view) != NULL;
    view->is_lost = holds_place && (state_or_null == NULL ||
                                       rendezvous_state_is_before(state_or_null, &view->seen));
    if (!view->is_lost) {
        rendezvous_state_copy(state_or_null != NULL ? state_or_null : &absent, &view->seen);
    }
    view->has_record = true;
    note_round(view);
}

struct rendezvous_state *rendezvous_view_begin_draft(struct rendezvous_view *view) {
    rendezvous_state_copy(&view->seen, &view->draft);
    return &view->draft;
}

void rendezvous_view_count_on(struct rendezvous_view *view) {
    bool is_of_round = view->seen.is_complete && view->seen.round == view->draft.round;
    if (!is_of_round && view->draft.round < view->next_round) {
        view->draft.round = view->next_round;
    }
}

void rendezvous_view_adopt_draft(struct rendezvous_view *view) {
    struct rendezvous_state written = view->draft;
    view->draft = view->seen;
    view->seen = written;
    view->is_lost = false;
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
    for (size_t i = 0; i < view->seen.count; i++) {
        const struct rendezvous_node *other = &view->seen.nodes[i];
        if (other->is_participant && other->rank < self->rank) {
            return false;
        }
    }
    return true;
}
