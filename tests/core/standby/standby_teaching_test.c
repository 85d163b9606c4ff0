/* SPDX-License-Identifier: BSD-3-Clause */
/* Standby workers that are ready, while the workers import more. */
#include "unit.h"

#include "standby_scene.h"

#define BEHIND (101 + STANDBY_MODULES_BEHIND)

/* Both spares are ready, and know 100 modules; there are more now. Rank 0 learns them. */
static void teach_first(struct scene *scene) {
    set_up(scene, false);
    make_ready(scene);
    take_records(scene, 3, BEHIND);
}

#define SCENE_TEST(name) TEST_OF(scene, name, set_up(&fixture, false), tear_down)

TEST_OF(scene, spares_that_are_far_behind_are_taught_one_after_the_other, teach_first(&fixture),
    tear_down) {
    expect(fixture, "teach rank=0; arm_timer at=12.500");
    assert_int_equal(state_of(fixture, 0), STANDBY_LEARNING);
    assert_int_equal(state_of(fixture, 1), STANDBY_READY); /* it can be used meanwhile */
    take_ready(fixture, 0);
    expect(fixture, "teach rank=1");
    take_ready(fixture, 1);
    expect(fixture, "tell_taught 2/2"); /* that they are ready has been told */
    take_records(fixture, 3, BEHIND);
    assert_int_equal(standby_plan_count(fixture->plan, STANDBY_READY), 2);
}

SCENE_TEST(a_spare_that_is_missing_comes_first) {
    make_ready(fixture);
    take_kind(fixture, STANDBY_EVENT_ATTEMPT_BEGAN);
    take_rank(fixture, STANDBY_EVENT_SPARE_GIVEN, 1);
    take_kind(fixture, STANDBY_EVENT_WORKERS_STARTED);
    take_records(fixture, 3, BEHIND);
    assert_int_equal(state_of(fixture, 0), STANDBY_READY);
    assert_int_equal(state_of(fixture, 1), STANDBY_WARMING);
    take_ready(fixture, 1);
    assert_int_equal(state_of(fixture, 0), STANDBY_LEARNING);
    take_ready(fixture, 0);
    expect(fixture, "tell_ready 2/2 bytes=2000; tell_taught 1/2");
}

SCENE_TEST(a_spare_at_the_line_of_its_program_is_not_taught) {
    make_ready(fixture);
    take_rank(fixture, STANDBY_EVENT_LINE, 0);
    take(fixture, (struct standby_event){
                      .kind = STANDBY_EVENT_SPARE_READY, .ready = {0, 1000, .is_at_line = true}});
    take_records(fixture, STANDBY_SETTLED_SECONDS, BEHIND);
    assert_int_equal(state_of(fixture, 0), STANDBY_READY);
    assert_int_equal(state_of(fixture, 1), STANDBY_LEARNING);
}

TEST_OF(scene, a_spare_that_learns_for_very_long_is_ended, teach_first(&fixture), tear_down) {
    wait_seconds(fixture, STANDBY_PATIENCE_SECONDS - 1);
    take_kind(fixture, STANDBY_EVENT_TIMER_FIRED);
    assert_int_equal(state_of(fixture, 0), STANDBY_LEARNING);
    wait_seconds(fixture, 1);
    take_kind(fixture, STANDBY_EVENT_TIMER_FIRED);
    assert_int_equal(strncmp(text_string(&fixture->said), "end_spare rank=0", 16), 0);
    assert_int_equal(state_of(fixture, 0), STANDBY_DUE);
}

static void take_unsuited(struct scene *scene, int local_rank, bool is_new) {
    take(scene, (struct standby_event){
                    .kind = STANDBY_EVENT_SPARE_UNSUITED, .unsuited = {local_rank, is_new}});
}

TEST_OF(scene, one_that_was_ready_may_be_unsuited_when_it_has_learned, teach_first(&fixture),
    tear_down) {
    take_unsuited(fixture, 0, true);
    assert_int_equal(state_of(fixture, 0), STANDBY_WARMING);
    take_ready(fixture, 0);
    assert_int_equal(state_of(fixture, 1), STANDBY_LEARNING); /* of the shorter list */
    take_unsuited(fixture, 1, false);
    assert_int_equal(standby_plan_off(fixture->plan), STANDBY_OFF_UNSUITED);
}

SCENE_TEST(the_list_becomes_shorter_only_so_often) {
    start(fixture);
    take_records(fixture, 2.5, 100);
    for (int cut = 0; cut < STANDBY_CUTS_MAXIMUM; cut++) {
        take_unsuited(fixture, 0, true);
        expect(fixture, "warm rank=0");
    }
    take_unsuited(fixture, 0, true);
    assert_int_equal(standby_plan_off(fixture->plan), STANDBY_OFF_UNSUITED);
}

SCENE_TEST(spares_of_a_new_node_may_all_find_the_same) {
    take(fixture, (struct standby_event){.kind = STANDBY_EVENT_INVITED, .records.modules = 100});
    take_unsuited(fixture, 0, true);
    expect(fixture, "warm rank=0 alone");
    take_unsuited(fixture, 1, false);
    expect(fixture, "warm rank=1 alone");
    take_ready(fixture, 0);
    take_ready(fixture, 1);
    assert_non_null(strstr(text_string(&fixture->said), "warmed"));
}

SCENE_TEST(new_nodes_are_told_again_what_may_be_imported) {
    start(fixture);
    take(
        fixture, (struct standby_event){
                     .kind = STANDBY_EVENT_WORKERS_STARTED, .is_first = true, .may_restart = true});
    take_records(fixture, 2.5, 100);
    assert_non_null(strstr(text_string(&fixture->said), "publish"));
    take_records(fixture, 2.5, 100);
    assert_null(strstr(text_string(&fixture->said), "publish"));
    take_unsuited(fixture, 0, true);
    expect(fixture, "publish; warm rank=0");
}
