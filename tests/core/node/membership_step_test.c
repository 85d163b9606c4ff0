/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/node/node_membership.h"
#include "node_fixture.h"

/* A step that nothing has been done in yet. */
struct fixture {
    struct node_membership membership;
    struct membership_event event;
    struct membership_effects effects;
    struct membership_step step;
};

static int set_up(void **state) {
    struct fixture *fixture = calloc(1, sizeof *fixture);
    if (fixture == NULL) {
        return -1;
    }
    struct membership_settings settings = membership_settings_of(MEMBERSHIP_CHANGING);
    node_membership_init(&fixture->membership, &settings);
    fixture->step =
        (struct membership_step){&fixture->membership, &fixture->event, &fixture->effects};
    *state = fixture;
    return 0;
}

static int tear_down(void **state) {
    struct fixture *fixture = *state;
    node_membership_clear(&fixture->membership);
    free(fixture);
    return 0;
}

static void effects_keep_their_order(void **state) {
    struct fixture *fixture = *state;
    struct membership_step *step = &fixture->step;
    fixture->membership.round = 7;
    membership_tell_round(step, ROUND_EVENT_ABANDON);
    membership_tell_rendezvous(step, RENDEZVOUS_EVENT_CLOSE_ASKED, "over");
    membership_tell_agent_kind(step, AGENT_EVENT_ROUND_OVER);
    membership_push_kind(step, MEMBERSHIP_EFFECT_DISCONNECT);
    expect_effects(&fixture->effects, "round: abandon; rendezvous: close_asked over; "
                                      "agent: round_over; disconnect");
    assert_int_equal(fixture->effects.items[0].round.round, 7);
}

static void a_note_is_the_memberships_own_text(void **state) {
    struct fixture *fixture = *state;
    text_append(&fixture->membership.note, "a word");
    membership_note(&fixture->step, LOG_LEVEL_WARNING);
    expect_effects(&fixture->effects, "note a word");
    assert_int_equal(fixture->effects.items[0].note.level, LOG_LEVEL_WARNING);
}

static void a_join_is_answered_with_its_own_ticket(void **state) {
    struct fixture *fixture = *state;
    fixture->event.join.ticket = 5;
    fixture->event.join.attempt = 2;
    membership_keep_join(&fixture->step);
    assert_int_equal(fixture->membership.stage, MEMBERSHIP_JOINING);
    membership_know_placement(
        &fixture->step, (struct node_placement){.attempt = 2, .group_world_size = 3}, "address");
    membership_fail_join(&fixture->step, "reason");
    expect_effects(&fixture->effects,
        "agent: joined ticket=5 restarts=2 nodes=3; agent: join_failed ticket=5");
    assert_int_equal(fixture->membership.stage, MEMBERSHIP_GIVEN_UP);
}

static void a_placement_owns_its_texts(void **state) {
    struct fixture *fixture = *state;
    const struct membership_knowledge *knowledge = &fixture->membership.knowledge;
    char address[] = "first";
    membership_know_placement(&fixture->step, (struct node_placement){.master_port = 1}, address);
    address[0] = '?';
    assert_string_equal(knowledge->placement.master_address, "first");
    membership_know_placement(&fixture->step, (struct node_placement){.master_port = 2}, "second");
    assert_string_equal(knowledge->placement.master_address, "second");
    assert_string_equal(knowledge->placement.run_id, "job");
    assert_int_equal(knowledge->placement.local_world_size, 2);
    assert_int_equal(knowledge->placement.master_port, 2);
}

static void a_trouble_is_kept_and_may_be_told_from_itself(void **state) {
    struct fixture *fixture = *state;
    const struct membership_knowledge *knowledge = &fixture->membership.knowledge;
    char reason[] = "reason";
    membership_fail_peer(&fixture->step, reason, 0);
    reason[0] = '?';
    assert_int_equal(fixture->membership.stage, MEMBERSHIP_IDLE);
    membership_fail_peer(&fixture->step, knowledge->trouble, 15);
    assert_string_equal(knowledge->trouble, "reason");
    expect_effects(&fixture->effects, "agent: peer_failed; agent: peer_failed signal=15");
}

static void a_barrier_is_left_with_or_without_the_others(void **state) {
    struct fixture *fixture = *state;
    membership_end_barrier(&fixture->step, false);
    assert_false(fixture->membership.end.has_passed);
    membership_pass_barrier(&fixture->step);
    assert_true(fixture->membership.end.has_passed);
    expect_effects(&fixture->effects, "agent: barrier_failed; agent: barrier_passed");
}

static void a_host_knows_the_port_of_its_store(void **state) {
    struct fixture *fixture = *state;
    fixture->event.port = 40001;
    membership_know_hosting(&fixture->step);
    assert_true(fixture->membership.is_host);
    assert_int_equal(fixture->membership.settings.master_port, 40001);
}

static void nothing_keeps_an_agent_that_is_settled(void **state) {
    struct fixture *fixture = *state;
    membership_settle(&fixture->step);
    expect_effects(&fixture->effects, "settled");
}

#define IN_A_STEP(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

static const struct CMUnitTest tests[] = {
    IN_A_STEP(effects_keep_their_order),
    IN_A_STEP(a_note_is_the_memberships_own_text),
    IN_A_STEP(a_join_is_answered_with_its_own_ticket),
    IN_A_STEP(a_placement_owns_its_texts),
    IN_A_STEP(a_trouble_is_kept_and_may_be_told_from_itself),
    IN_A_STEP(a_barrier_is_left_with_or_without_the_others),
    IN_A_STEP(a_host_knows_the_port_of_its_store),
    IN_A_STEP(nothing_keeps_an_agent_that_is_settled),
};

UNIT_TESTS(tests)
