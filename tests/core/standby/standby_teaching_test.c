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

TEST(spares_that_are_far_behind_are_taught_one_after_the_other) {
    struct scene scene;
    teach_first(&scene);
    expect(&scene, "teach rank=0; arm_timer at=12.500");
    assert_int_equal(state_of(&scene, 0), STANDBY_LEARNING);
    assert_int_equal(state_of(&scene, 1), STANDBY_READY); /* it can be used meanwhile */
    take_ready(&scene, 0);
    expect(&scene, "teach rank=1");
    take_ready(&scene, 1);
    expect(&scene, "tell_taught 2/2"); /* that they are ready has been told */
    take_records(&scene, 3, BEHIND);
    assert_int_equal(standby_plan_count(scene.plan, STANDBY_READY), 2);
    tear_down(&scene);
}

TEST(few_modules_are_taught_when_workers_have_been_quiet_for_long) {
    struct scene scene;
    set_up(&scene, false);
    make_ready(&scene);
    take_records(&scene, 3, BEHIND - 1);
    assert_int_equal(standby_plan_count(scene.plan, STANDBY_READY), 2);
    take_records(&scene, STANDBY_SETTLED_SECONDS, 100);
    assert_int_equal(standby_plan_count(scene.plan, STANDBY_READY), 2);
    take_records(&scene, STANDBY_SETTLED_SECONDS, 101);
    assert_int_equal(state_of(&scene, 0), STANDBY_LEARNING);
    tear_down(&scene);
}

TEST(a_spare_that_is_missing_comes_first) {
    struct scene scene;
    set_up(&scene, false);
    make_ready(&scene);
    take_kind(&scene, STANDBY_EVENT_ATTEMPT_BEGAN);
    take_rank(&scene, STANDBY_EVENT_SPARE_GIVEN, 1);
    take_kind(&scene, STANDBY_EVENT_WORKERS_STARTED);
    take_records(&scene, 3, BEHIND);
    assert_int_equal(state_of(&scene, 0), STANDBY_READY);
    assert_int_equal(state_of(&scene, 1), STANDBY_WARMING);
    take_ready(&scene, 1);
    assert_int_equal(state_of(&scene, 0), STANDBY_LEARNING);
    take_ready(&scene, 0);
    expect(&scene, "tell_ready 2/2 bytes=2000; tell_taught 1/2");
    tear_down(&scene);
}

TEST(a_line_that_workers_come_to_replaces_what_has_only_imported) {
    struct scene scene;
    set_up(&scene, false);
    make_ready(&scene);
    take_rank(&scene, STANDBY_EVENT_LINE, 0);
    expect(&scene, "end_spare rank=0; warm rank=0");
    take_rank(&scene, STANDBY_EVENT_LINE, 1);
    expect(&scene, "end_spare rank=1");
    take(&scene, (struct standby_event){
                     .kind = STANDBY_EVENT_SPARE_READY, .ready = {0, 1000, .is_at_line = true}});
    assert_int_equal(state_of(&scene, 1), STANDBY_WARMING);
    tear_down(&scene);
}

TEST(a_spare_at_the_line_of_its_program_is_not_taught) {
    struct scene scene;
    set_up(&scene, false);
    make_ready(&scene);
    take_rank(&scene, STANDBY_EVENT_LINE, 0);
    take(&scene, (struct standby_event){
                     .kind = STANDBY_EVENT_SPARE_READY, .ready = {0, 1000, .is_at_line = true}});
    take_records(&scene, STANDBY_SETTLED_SECONDS, BEHIND);
    assert_int_equal(state_of(&scene, 0), STANDBY_READY);
    assert_int_equal(state_of(&scene, 1), STANDBY_LEARNING);
    tear_down(&scene);
}

TEST(nobody_is_taught_while_workers_are_started_again) {
    struct scene scene;
    teach_first(&scene);
    take_kind(&scene, STANDBY_EVENT_WORKERS_ENDING);
    take_kind(&scene, STANDBY_EVENT_ATTEMPT_BEGAN);
    take_rank(&scene, STANDBY_EVENT_SPARE_GIVEN, 1); /* rank 0 starts without its spare */
    take_kind(&scene, STANDBY_EVENT_WORKERS_STARTED);
    assert_non_null(strstr(text_string(&scene.said), "tell_used 1/2"));
    assert_int_equal(state_of(&scene, 0), STANDBY_LEARNING);
    take_ready(&scene, 0);
    assert_int_equal(state_of(&scene, 0), STANDBY_READY);
    tear_down(&scene);
}

TEST(a_spare_that_ends_while_it_learns_is_judged_as_one_that_warms) {
    struct scene scene;
    teach_first(&scene);
    take_end(&scene, 0, true, SIGNAL_NUMBER_KILL);
    assert_int_equal(state_of(&scene, 0), STANDBY_DUE);
    assert_int_equal(state_of(&scene, 1), STANDBY_LEARNING);
    tear_down(&scene);
    teach_first(&scene);
    take_end(&scene, 0, false, 3);
    expect(&scene, "tell_off ended rank=0; end_all; disarm_timer");
    tear_down(&scene);
    teach_first(&scene);
    take_rank(&scene, STANDBY_EVENT_SPARE_DIRTY, 0);
    expect(&scene, "tell_off dirty rank=0; end_all; disarm_timer");
    tear_down(&scene);
}

TEST(a_spare_that_learns_for_very_long_is_ended) {
    struct scene scene;
    teach_first(&scene);
    wait_seconds(&scene, STANDBY_PATIENCE_SECONDS - 1);
    take_kind(&scene, STANDBY_EVENT_TIMER_FIRED);
    assert_int_equal(state_of(&scene, 0), STANDBY_LEARNING);
    wait_seconds(&scene, 1);
    take_kind(&scene, STANDBY_EVENT_TIMER_FIRED);
    assert_int_equal(strncmp(text_string(&scene.said), "end_spare rank=0", 16), 0);
    assert_int_equal(state_of(&scene, 0), STANDBY_DUE);
    tear_down(&scene);
}

static void take_unsuited(struct scene *scene, int local_rank, bool is_new) {
    take(scene, (struct standby_event){
                    .kind = STANDBY_EVENT_SPARE_UNSUITED, .unsuited = {local_rank, is_new}});
}

TEST(one_that_may_not_import_all_is_followed_by_one_that_imports_less) {
    struct scene scene;
    set_up(&scene, false);
    start(&scene);
    take_records(&scene, 2.5, 100);
    take_unsuited(&scene, 0, true);
    expect(&scene, "warm rank=0");
    take_ready(&scene, 0);
    take_ready(&scene, 1);
    expect(&scene, "tell_ready 2/2 bytes=2000");
    tear_down(&scene);
}

TEST(one_that_was_ready_may_be_unsuited_when_it_has_learned) {
    struct scene scene;
    teach_first(&scene);
    take_unsuited(&scene, 0, true);
    assert_int_equal(state_of(&scene, 0), STANDBY_WARMING);
    take_ready(&scene, 0);
    assert_int_equal(state_of(&scene, 1), STANDBY_LEARNING); /* of the shorter list */
    take_unsuited(&scene, 1, false);
    assert_int_equal(standby_plan_off(scene.plan), STANDBY_OFF_UNSUITED);
    tear_down(&scene);
}

TEST(one_that_names_nothing_new_is_the_last) {
    struct scene scene;
    set_up(&scene, false);
    start(&scene);
    take_records(&scene, 2.5, 100);
    take_unsuited(&scene, 0, false);
    expect(&scene, "tell_off unsuited rank=0; end_all; disarm_timer");
    take_unsuited(&scene, 0, true);
    expect(&scene, "");
    tear_down(&scene);
}

TEST(the_list_becomes_shorter_only_so_often) {
    struct scene scene;
    set_up(&scene, false);
    start(&scene);
    take_records(&scene, 2.5, 100);
    for (int cut = 0; cut < STANDBY_CUTS_MAXIMUM; cut++) {
        take_unsuited(&scene, 0, true);
        expect(&scene, "warm rank=0");
    }
    take_unsuited(&scene, 0, true);
    assert_int_equal(standby_plan_off(scene.plan), STANDBY_OFF_UNSUITED);
    tear_down(&scene);
}

TEST(spares_of_a_new_node_may_all_find_the_same) {
    struct scene scene;
    set_up(&scene, false);
    take(&scene, (struct standby_event){.kind = STANDBY_EVENT_INVITED, .records.modules = 100});
    take_unsuited(&scene, 0, true);
    expect(&scene, "warm rank=0 alone");
    take_unsuited(&scene, 1, false);
    expect(&scene, "warm rank=1 alone");
    take_ready(&scene, 0);
    take_ready(&scene, 1);
    assert_non_null(strstr(text_string(&scene.said), "warmed"));
    tear_down(&scene);
}

TEST(new_nodes_are_told_again_what_may_be_imported) {
    struct scene scene;
    set_up(&scene, false);
    start(&scene);
    take(&scene, (struct standby_event){
                     .kind = STANDBY_EVENT_WORKERS_STARTED, .is_first = true, .may_restart = true});
    take_records(&scene, 2.5, 100);
    assert_non_null(strstr(text_string(&scene.said), "publish"));
    take_records(&scene, 2.5, 100);
    assert_null(strstr(text_string(&scene.said), "publish"));
    take_unsuited(&scene, 0, true);
    expect(&scene, "publish; warm rank=0");
    tear_down(&scene);
}
