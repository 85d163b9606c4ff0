/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous/rendezvous_place.h"

#include <stdio.h>

#include "core/rendezvous/rendezvous_regroup.h"

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
        snprintf(out, size, "a node has left the round");
    } else {
        rendezvous_regroup_name_cause(&missing->identity, "has left the round", out, size);
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
