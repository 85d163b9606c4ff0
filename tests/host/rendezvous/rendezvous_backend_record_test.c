/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "host/rendezvous_backend_fixture.h"

FIXTURE_TEST_AFTER(a_job_that_has_just_begun_has_no_record, set_up(&fixture, true)) {
    fetch(&fixture->nodes[0]);
    assert_false(fixture->nodes[0].has_state);
}

FIXTURE_TEST_AFTER(
    of_two_writers_who_saw_the_same_one_wins_and_the_other_learns_what_is, set_up(&fixture, true)) {
    fetch(&fixture->nodes[0]);
    fetch(&fixture->nodes[1]);
    write_round(&fixture->nodes[0], 1, true, 1);
    assert_true(fixture->nodes[0].has_won);
    write_round(&fixture->nodes[1], 2, true, 1);
    assert_false(fixture->nodes[1].has_won);
    assert_int_equal(fixture->nodes[1].state.round, 1);
    write_round(&fixture->nodes[1], 2, true, 1);
    assert_true(fixture->nodes[1].has_won);
}

FIXTURE_TEST_AFTER(others_are_told_of_a_change_and_the_writer_is_not, set_up(&fixture, true)) {
    fetch(&fixture->nodes[0]);
    fetch(&fixture->nodes[1]);
    write_round(
        &fixture->nodes[0], 1, false, 2); /* the node's "written" and the other node's "changed" */
    assert_int_equal(fixture->nodes[1].changes, 1);
    fetch(&fixture->nodes[1]);
    assert_int_equal(fixture->nodes[1].state.round, 1);
    write_round(&fixture->nodes[1], 2, false, 2);
    assert_int_equal(fixture->nodes[0].changes, 1);
    assert_int_equal(fixture->nodes[1].changes, 1);
}

FIXTURE_TEST_AFTER(others_are_told_of_the_last_word_of_a_node_that_goes, set_up(&fixture, true)) {
    fetch(&fixture->nodes[0]);
    fetch(&fixture->nodes[1]);
    fixture->nodes[0].goes_when_it_has_written = true;
    write_round(
        &fixture->nodes[0], 1, false, 2); /* the node's "written" and the other node's "changed" */
    assert_int_equal(fixture->nodes[1].changes, 1);
}

FIXTURE_TEST_AFTER(a_quiet_change_wakes_nobody, set_up(&fixture, true)) {
    fetch(&fixture->nodes[0]);
    fetch(&fixture->nodes[1]);
    write_round(&fixture->nodes[0], 1, true, 1);
    write_round(&fixture->nodes[0], 2, false, 2);
    assert_int_equal(fixture->nodes[1].changes, 1);
}

/* A node counted a change and died before it told it. The next beat of any node repairs that. */
FIXTURE_TEST_AFTER(
    a_change_that_was_counted_and_not_told_is_found_by_the_next_beat, set_up(&fixture, true)) {
    fetch(&fixture->nodes[0]);
    ask_bare(
        fixture, (struct store_request){.operation = STORE_ADD,
                     .key = slice_from_string("/torch.rendezvous.a job/with a name/muster/changes"),
                     .number = 1});
    assert_int_equal(fixture->nodes[0].changes, 0);
    rendezvous_backend_beat(fixture->nodes[0].backend);
    await(fixture, 1);
    assert_int_equal(fixture->nodes[0].changes, 1);
}

FIXTURE_TEST_AFTER(
    a_record_that_makes_no_sense_is_named_and_left_as_it_is, set_up(&fixture, true)) {
    set_record(fixture, "not a record");
    fetch(&fixture->nodes[0]);
    assert_non_null(strstr(fixture->nodes[0].trouble, "torch.rendezvous.a job/with a name"));
    ask_bare(fixture, (struct store_request){.operation = STORE_GET,
                          .key = slice_from_string("/torch.rendezvous.a job/with a name")});
    assert_string_equal(text_string(&fixture->bare_answer), "not a record");
}

/* A record cannot hold an address that is not UTF-8, because Python could not read it. */
static void write_what_cannot_be_spelled(struct node *node) {
    struct rendezvous_state state = {0};
    struct node_identity identity = {.address = "\xff", .pid = 1};
    rendezvous_state_obtain(&state, &identity)->is_waiting = true;
    node->is_inside = true;
    rendezvous_backend_write(node->backend, &state, false);
    node->is_inside = false;
    rendezvous_state_clear(&state);
}

FIXTURE_TEST_AFTER(a_write_that_cannot_be_spelled_is_told_from_the_loop, set_up(&fixture, true)) {
    struct node *node = &fixture->nodes[0];
    fixture->awaited = 1;
    write_what_cannot_be_spelled(node);
    assert_null(node->trouble);
    await(fixture, 1);
    assert_non_null(strstr(node->trouble, "cannot be written"));
    assert_false(node->was_told_inside);
}

FIXTURE_TEST_AFTER(nothing_is_told_once_the_backend_is_disconnected, set_up(&fixture, true)) {
    write_what_cannot_be_spelled(&fixture->nodes[0]);
    rendezvous_backend_disconnect(fixture->nodes[0].backend);
    fetch(&fixture->nodes[1]);
    assert_null(fixture->nodes[0].trouble);
}
