/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/rendezvous/rendezvous_member.h"
#include "rendezvous_fixture.h"
#include "record_tools.h"

struct fixture {
    struct rendezvous_place place;
    struct rendezvous_view view; /* the view of "me", in round 3 with "a" and "b" */
};

static int set_up(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    if (fixture == NULL) {
        return -1;
    }
    rendezvous_place_init(&fixture->place);
    fixture->view.me = torch_node("me");
    fixture->view.seen.round = 3;
    fixture->view.seen.is_complete = true;
    place_participant(&fixture->view.seen, "a");
    place_participant(&fixture->view.seen, "b");
    place_participant(&fixture->view.seen, "me");
    *state = fixture;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;
    rendezvous_place_clear(&fixture->place);
    rendezvous_view_clear(&fixture->view);
    free(fixture);
    return 0;
}

static void lose(struct fixture *fixture, const char *name) {
    struct rendezvous_settings settings = sized(1, 4);
    struct node_identity node = torch_node(name);
    torchrun_expels(&fixture->view.seen, &settings, &node);
}

#define IN_PLACE(test) TEST_WITH(test, set_up, tear_down)

IN_PLACE(a_world_that_is_left_is_the_last_that_ended) {
    struct fixture *fixture = *state;
    assert_int_equal(rendezvous_place_round(&fixture->place), RENDEZVOUS_NO_ROUND);
    rendezvous_place_ask_join(&fixture->place);
    rendezvous_place_enter(&fixture->place, &fixture->view.seen, false, false);
    assert_false(fixture->place.is_join_asked);
    assert_int_equal(rendezvous_place_round(&fixture->place), 3);
    assert_int_equal(fixture->place.ended_round, RENDEZVOUS_NO_ROUND);
    rendezvous_place_leave(&fixture->place);
    assert_int_equal(rendezvous_place_round(&fixture->place), RENDEZVOUS_NO_ROUND);
    assert_int_equal(fixture->place.ended_round, 3);
}

IN_PLACE(who_is_missing_from_a_world_is_named) {
    struct fixture *fixture = *state;
    char reason[256];
    rendezvous_place_enter(&fixture->place, &fixture->view.seen, false, false);
    lose(fixture, "b");
    rendezvous_place_name_missing(&fixture->place, &fixture->view.seen, 3, reason, sizeof reason);
    assert_string_equal(reason, "node b (pid 1) has left the round");
    rendezvous_place_name_missing(&fixture->place, &fixture->view.seen, 4, reason, sizeof reason);
    assert_string_equal(reason, "a node has left the round");
}

IN_PLACE(who_waits_in_an_open_job_is_parked_even_when_it_closes) {
    struct fixture *fixture = *state;
    rendezvous_place_look(&fixture->place, &fixture->view);
    assert_false(fixture->place.was_parked);
    lose(fixture, "me");
    place_waiting(&fixture->view.seen, "me");
    rendezvous_place_look(&fixture->place, &fixture->view);
    assert_true(fixture->place.was_parked);
    lose(fixture, "me");
    fixture->view.seen.is_closed = true;
    rendezvous_place_look(&fixture->place, &fixture->view);
    assert_true(fixture->place.was_parked);
}

IN_PLACE(rank_0_of_a_ranked_world_knows_where_its_workers_meet) {
    struct fixture *fixture = *state;
    struct rendezvous_place *place = &fixture->place;
    rendezvous_place_enter(place, &fixture->view.seen, false, false);
    rendezvous_place_note_opened(place, 3, "10.0.0.1", 29400);
    assert_int_equal(place->meeting.round, RENDEZVOUS_WISH_NO_ROUND);
    rendezvous_place_enter(place, &fixture->view.seen, true, false);
    rendezvous_place_note_opened(place, 2, "10.0.0.1", 29400); /* it comes too late */
    assert_int_equal(place->meeting.round, RENDEZVOUS_WISH_NO_ROUND);
    rendezvous_place_note_opened(place, 3, "10.0.0.1", 29400);
    assert_int_equal(place->meeting.round, 3);
    assert_int_equal(place->meeting.port, 29400);
    rendezvous_place_leave(place);
    rendezvous_place_note_opened(place, 3, "10.0.0.2", 1); /* it comes too late */
    assert_string_equal(place->meeting.address, "10.0.0.1");
    rendezvous_place_say_nothing(place);
    assert_int_equal(place->meeting.round, RENDEZVOUS_WISH_NO_ROUND);
}

/* What is ready for a held world stays so: the node said it once. */
IN_PLACE(who_has_entered_a_held_world_is_ready_for_it) {
    struct fixture *fixture = *state;
    struct rendezvous_place *place = &fixture->place;
    rendezvous_place_enter(place, &fixture->view.seen, false, true);
    assert_int_equal(place->meeting.round, 3);
    rendezvous_place_release(place);
    assert_false(place->is_held);
    rendezvous_place_leave(place);
    assert_int_equal(place->meeting.round, 3);
    rendezvous_place_say_nothing(place);
    assert_int_equal(place->meeting.round, RENDEZVOUS_NO_ROUND);
}

IN_PLACE(rank_0_is_ready_when_its_store_is_open) {
    struct fixture *fixture = *state;
    struct rendezvous_place *place = &fixture->place;
    rendezvous_place_enter(place, &fixture->view.seen, true, true);
    assert_int_equal(place->meeting.round, RENDEZVOUS_NO_ROUND);
    rendezvous_place_note_opened(place, 3, "10.0.0.1", 29400);
    assert_int_equal(place->meeting.round, 3);
    rendezvous_place_leave(place);
    assert_false(place->is_held);
}
