/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/rendezvous/rendezvous_member.h"
#include "rendezvous_fixture.h"

struct fixture {
    struct rendezvous_view view; /* the view of "me" */
    struct rendezvous_state record;
};

static int set_up(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    if (fixture == NULL) {
        return -1;
    }
    fixture->view.me = torch_node("me");
    place_participant(&fixture->record, "a");
    place_participant(&fixture->record, "me");
    *state = fixture;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;
    rendezvous_view_clear(&fixture->view);
    rendezvous_state_clear(&fixture->record);
    free(fixture);
    return 0;
}

#define WITH_VIEW(test) TEST_WITH(test, set_up, tear_down)

WITH_VIEW(heartbeats_are_no_news) {
    struct fixture *fixture = *state;
    rendezvous_view_see(&fixture->view, &fixture->record, false);
    fixture->record.nodes[0].heartbeat = wall_seconds(7);
    assert_false(rendezvous_view_is_news(&fixture->view, &fixture->record));
    fixture->record.nodes[0].is_waiting = true;
    assert_true(rendezvous_view_is_news(&fixture->view, &fixture->record));
}

WITH_VIEW(a_record_that_is_gone_is_held_by_those_in_it) {
    struct fixture *fixture = *state;
    fixture->record.is_complete = true;
    rendezvous_view_see(&fixture->view, &fixture->record, false);
    assert_false(fixture->view.is_lost);
    rendezvous_view_see(&fixture->view, NULL, false);
    assert_true(fixture->view.is_lost);
    assert_true(rendezvous_view_is_participant(&fixture->view));
    fixture->record.is_complete = false; /* an earlier one: somebody who knew no better wrote it */
    rendezvous_view_see(&fixture->view, &fixture->record, false);
    assert_true(fixture->view.is_lost);
    rendezvous_view_begin_draft(&fixture->view);
    rendezvous_view_adopt_draft(&fixture->view);
    assert_false(fixture->view.is_lost);
    assert_true(fixture->view.seen.is_complete);
}

WITH_VIEW(a_record_may_have_had_rounds_of_which_who_begins_it_anew_has_not_heard) {
    struct fixture *fixture = *state;
    fixture->view.me = torch_node("other");
    rendezvous_view_see(&fixture->view, NULL, false);
    assert_false(rendezvous_view_may_miss_rounds(&fixture->view)); /* the job begins */
    rendezvous_view_see(&fixture->view, NULL, true);
    assert_true(rendezvous_view_may_miss_rounds(&fixture->view));
    rendezvous_view_see(&fixture->view, &fixture->record, true);
    assert_false(rendezvous_view_may_miss_rounds(&fixture->view));
    rendezvous_view_see(&fixture->view, NULL, false);
    assert_true(rendezvous_view_may_miss_rounds(&fixture->view));
    rendezvous_view_see(&fixture->view, NULL, false);
    assert_true(rendezvous_view_may_miss_rounds(&fixture->view));
    rendezvous_view_begin_draft(&fixture->view);
    rendezvous_view_adopt_draft(&fixture->view);
    assert_false(rendezvous_view_may_miss_rounds(&fixture->view));
}

WITH_VIEW(a_record_that_is_gone_is_seen_as_empty_by_others) {
    struct fixture *fixture = *state;
    fixture->view.me = torch_node("other");
    rendezvous_view_see(&fixture->view, &fixture->record, false);
    assert_true(rendezvous_view_is_news(&fixture->view, NULL));
    rendezvous_view_see(&fixture->view, NULL, false);
    assert_true(fixture->view.has_record);
    check_record(&fixture->view.seen, "round 0 open [] wait [] spare []");
}

WITH_VIEW(a_draft_changes_nothing_until_it_is_written) {
    struct fixture *fixture = *state;
    rendezvous_view_see(&fixture->view, &fixture->record, false);
    rendezvous_view_begin_draft(&fixture->view)->round = 5;
    assert_int_equal(fixture->view.seen.round, 0);
    rendezvous_view_adopt_draft(&fixture->view);
    assert_int_equal(fixture->view.seen.round, 5);
}

WITH_VIEW(a_new_name_is_in_no_list) {
    struct fixture *fixture = *state;
    rendezvous_view_see(&fixture->view, &fixture->record, false);
    assert_true(rendezvous_view_is_participant(&fixture->view));
    rendezvous_view_rename(&fixture->view, 9);
    assert_null(rendezvous_view_self(&fixture->view));
    assert_false(rendezvous_view_is_participant(&fixture->view));
}

WITH_VIEW(a_node_finds_itself_in_what_it_has_seen_written_or_been_told_last) {
    struct fixture *fixture = *state;
    struct rendezvous_view *view = &fixture->view;
    rendezvous_view_see(view, &fixture->record, false);
    assert_ptr_equal(rendezvous_view_self(view), &view->seen.nodes[1]);
    (void)rendezvous_state_take_out(
        rendezvous_view_begin_draft(view), &fixture->record.nodes[0].identity, 1);
    assert_ptr_equal(rendezvous_view_self(view), &view->seen.nodes[1]);
    rendezvous_view_adopt_draft(view);
    assert_ptr_equal(rendezvous_view_self(view), &view->seen.nodes[0]);
    rendezvous_view_be_told(view, &fixture->record);
    assert_ptr_equal(rendezvous_view_self(view), &view->seen.nodes[1]);
    assert_true(rendezvous_view_is_participant(view));
    (void)rendezvous_state_take_out(rendezvous_view_begin_draft(view), &view->me, 1);
    rendezvous_view_adopt_draft(view);
    assert_null(rendezvous_view_self(view));
    assert_false(rendezvous_view_is_participant(view));
}
