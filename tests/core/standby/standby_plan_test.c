/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <string.h>

#include "core/standby/standby_plan.h"
#include "standby_scene.h"

#define SCENE_TEST(name) TEST_OF(scene, name, set_up(&fixture, false), tear_down)

SCENE_TEST(workers_that_still_import_are_looked_at_when_they_may_be_quiet) {
    start(fixture);
    take_records(fixture, 1, 50);
    expect(fixture, "arm_timer at=3.125");
    take_records(fixture, 2.49, 50);
    expect(fixture, "arm_timer at=2.600");
    assert_int_equal(state_of(fixture, 0), STANDBY_ABSENT);
}

SCENE_TEST(looks_at_quiet_workers_become_rare) {
    make_ready(fixture);
    double expected = 10;
    for (int i = 0; i < 12; i++) {
        wait_seconds(fixture, STANDBY_LOOK_SECONDS);
        double at = duration_seconds((struct duration){fixture->now.nanoseconds});
        take_kind(fixture, STANDBY_EVENT_TIMER_FIRED);
        expect(fixture, "look");
        take_records(fixture, 60, 100);
        char *words = text_format("arm_timer at=%.3f", at + expected);
        expect(fixture, words);
        free(words);
        expected = 2 * expected > STANDBY_LOOK_SECONDS ? STANDBY_LOOK_SECONDS : 2 * expected;
    }
}

SCENE_TEST(without_a_hello_there_is_no_spare_and_that_is_told_once) {
    int told = 0;
    take_kind(fixture, STANDBY_EVENT_WORKERS_STARTED);
    for (int i = 0; i < 8; i++) {
        wait_seconds(fixture, STANDBY_LOOK_SECONDS);
        take_kind(fixture, STANDBY_EVENT_TIMER_FIRED);
        take_records(fixture, 60, 0);
        told += strstr(text_string(&fixture->said), "tell_silent") != NULL ? 1 : 0;
        assert_null(strstr(text_string(&fixture->said), "warm"));
    }
    assert_int_equal(told, 1);
}

SCENE_TEST(given_spares_are_told_of_and_warmed_again) {
    make_ready(fixture);
    take_kind(fixture, STANDBY_EVENT_WORKERS_ENDING);
    expect(fixture, "disarm_timer");
    take_kind(fixture, STANDBY_EVENT_ATTEMPT_BEGAN);
    expect(fixture, "");
    take_rank(fixture, STANDBY_EVENT_SPARE_GIVEN, 0);
    take_rank(fixture, STANDBY_EVENT_SPARE_GIVEN, 1);
    take_kind(fixture, STANDBY_EVENT_WORKERS_STARTED);
    expect(fixture, "tell_used 2/2; arm_timer at=3.125");
    assert_int_equal(standby_plan_used(fixture->plan), 2);
    take_records(fixture, 2.5, 100);
    expect(fixture, "warm rank=0; arm_timer at=7.500");
    take_kind(fixture, STANDBY_EVENT_WORKERS_ENDING);
    take_kind(fixture, STANDBY_EVENT_ATTEMPT_BEGAN);
    assert_int_equal(standby_plan_count(fixture->plan, STANDBY_GIVEN), 0);
    take_kind(fixture, STANDBY_EVENT_WORKERS_STARTED);
    expect(fixture, "tell_used 0/2 cold=importing,due; arm_timer at=3.125");
}

SCENE_TEST(a_spare_goes_on_warming_while_workers_are_started_again) {
    start(fixture);
    take_records(fixture, 2.5, 100);
    take_kind(fixture, STANDBY_EVENT_WORKERS_ENDING);
    expect(fixture, "arm_timer at=122.500");
    take_ready(fixture, 0);
    expect(fixture, "disarm_timer"); /* rank 1 waits until workers run */
    assert_int_equal(state_of(fixture, 0), STANDBY_READY);
    assert_int_equal(state_of(fixture, 1), STANDBY_DUE);
}

SCENE_TEST(a_spare_that_does_not_fit_is_made_anew) {
    make_ready(fixture);
    take_kind(fixture, STANDBY_EVENT_ATTEMPT_BEGAN);
    take_rank(fixture, STANDBY_EVENT_SPARE_REFUSED, 0);
    take_rank(fixture, STANDBY_EVENT_SPARE_GIVEN, 1);
    take_kind(fixture, STANDBY_EVENT_WORKERS_STARTED);
    expect(fixture, "tell_used 1/2 cold=refused,not; arm_timer at=3.125");
    take_records(fixture, 2.5, 100);
    assert_int_equal(state_of(fixture, 0), STANDBY_WARMING);
}

SCENE_TEST(a_dirty_spare_is_the_last_one) {
    start(fixture);
    take_records(fixture, 2.5, 100);
    take_ready(fixture, 0);
    take_rank(fixture, STANDBY_EVENT_SPARE_DIRTY, 1);
    expect(fixture, "tell_off dirty rank=1; end_all; disarm_timer");
    assert_int_equal(standby_plan_off(fixture->plan), STANDBY_OFF_DIRTY);
    take_end(fixture, 1, false, 77);
    expect(fixture, "");
    take_kind(fixture, STANDBY_EVENT_ATTEMPT_BEGAN);
    take_kind(fixture, STANDBY_EVENT_WORKERS_STARTED);
    expect(fixture, "tell_used 0/2 cold=off,off");
    take_records(fixture, 60, 100);
    expect(fixture, "");
}

SCENE_TEST(a_spare_that_ends_by_itself_has_gone_another_way) {
    start(fixture);
    take_records(fixture, 2.5, 100);
    take_end(fixture, 0, false, 0);
    expect(fixture, "tell_off ended rank=0; end_all; disarm_timer");
}

SCENE_TEST(a_spare_that_does_not_reach_the_hook_ends_them_all) {
    start(fixture);
    take_records(fixture, 2.5, 100);
    wait_seconds(fixture, STANDBY_WARMING_SECONDS);
    take_kind(fixture, STANDBY_EVENT_TIMER_FIRED);
    expect(fixture, "tell_off late rank=0; end_all");
}

SCENE_TEST(a_spare_that_has_reached_the_hook_may_take_long) {
    start(fixture);
    take_records(fixture, 2.5, 100);
    take_rank(fixture, STANDBY_EVENT_SPARE_HELLO, 0);
    wait_seconds(fixture, STANDBY_WARMING_SECONDS);
    take_kind(fixture, STANDBY_EVENT_TIMER_FIRED);
    assert_int_equal(state_of(fixture, 0), STANDBY_WARMING);
    wait_seconds(fixture, STANDBY_PATIENCE_SECONDS);
    take_kind(fixture, STANDBY_EVENT_TIMER_FIRED);
    assert_int_equal(strncmp(text_string(&fixture->said), "end_spare rank=0", 16), 0);
    assert_int_equal(state_of(fixture, 0), STANDBY_DUE);
    assert_int_equal(state_of(fixture, 1), STANDBY_WARMING);
}

SCENE_TEST(a_program_that_fails_above_its_line_counts_as_a_death) {
    start(fixture);
    take_records(fixture, 2.5, 100);
    take_rank(fixture, STANDBY_EVENT_SPARE_FAILED, 0);
    take_rank(fixture, STANDBY_EVENT_SPARE_FAILED, 0); /* it has ended, and is not there */
    wait_seconds(fixture, STANDBY_BACKOFF_SECONDS - 1);
    take_kind(fixture, STANDBY_EVENT_TIMER_FIRED);
    assert_int_equal(standby_plan_count(fixture->plan, STANDBY_DUE), 2); /* it would fail as well */
    wait_seconds(fixture, 1);
    take_kind(fixture, STANDBY_EVENT_TIMER_FIRED);
    assert_int_equal(state_of(fixture, 0), STANDBY_WARMING);
    take_rank(fixture, STANDBY_EVENT_SPARE_FAILED, 0);
    wait_seconds(fixture, 2 * STANDBY_BACKOFF_SECONDS);
    take_kind(fixture, STANDBY_EVENT_TIMER_FIRED);
    take_rank(fixture, STANDBY_EVENT_SPARE_FAILED, 0);
    assert_int_equal(
        strncmp(text_string(&fixture->said), "tell_off deaths rank=0; end_all", 31), 0);
}

SCENE_TEST(the_last_attempt_needs_no_spares) {
    take(fixture, (struct standby_event){.kind = STANDBY_EVENT_WORKERS_STARTED});
    expect(fixture, "");
    take_rank(fixture, STANDBY_EVENT_HELLO, 0);
    take_records(fixture, 60, 10);
    expect(fixture, "");
}

SCENE_TEST(the_end_of_the_job_ends_all) {
    make_ready(fixture);
    take_kind(fixture, STANDBY_EVENT_JOB_ENDING);
    expect(fixture, "end_all; disarm_timer");
    take_end(fixture, 0, true, SIGNAL_NUMBER_KILL);
    take_ready(fixture, 1);
    expect(fixture, "");
    assert_int_equal(standby_plan_count(fixture->plan, STANDBY_ABSENT), 2);
}

TEST_OF(scene, auto_leaves_most_of_the_memory_to_others, set_up(&fixture, true), tear_down) {
    make_ready(fixture);
    take(fixture, (struct standby_event){.kind = STANDBY_EVENT_RECORDS,
                      .records = {duration_from_seconds(3), 100, 2 * 1000 * STANDBY_MEMORY_PART}});
    assert_int_equal(standby_plan_count(fixture->plan, STANDBY_READY), 2);
    struct standby_event scarce = {.kind = STANDBY_EVENT_RECORDS,
        .records = {duration_from_seconds(3), 100, 2 * 1000 * STANDBY_MEMORY_PART - 1}};
    take(fixture, scarce);
    assert_int_equal(strncmp(text_string(&fixture->said), "tell_scarce; end_all", 20), 0);
    assert_int_equal(standby_plan_count(fixture->plan, STANDBY_ABSENT), 2);
    take(fixture, scarce);
    assert_null(strstr(text_string(&fixture->said), "tell_scarce"));
    take_records(fixture, 3, 100);
    assert_int_equal(state_of(fixture, 0), STANDBY_WARMING);
}

TEST_OF(scene, auto_begins_none_on_a_new_node_without_room, set_up(&fixture, true), tear_down) {
    take(fixture, (struct standby_event){.kind = STANDBY_EVENT_INVITED,
                      .records = {.modules = 100, .memory = 2 * 1000 * STANDBY_MEMORY_PART - 1}});
    expect(fixture, "tell_scarce; end_all; warmed");
}

static void invite(struct scene *scene) {
    take(scene, (struct standby_event){.kind = STANDBY_EVENT_INVITED, .records.modules = 100});
}

SCENE_TEST(a_new_node_warms_all_at_once_and_says_when_all_are_ready) {
    invite(fixture);
    expect(fixture, "warm rank=0 alone; warm rank=1 alone; arm_timer at=120.000");
    take_ready(fixture, 1);
    expect(fixture, "");
    take_ready(fixture, 0);
    expect(fixture, "warmed; tell_ready 2/2 bytes=2000; disarm_timer");
    take_kind(fixture, STANDBY_EVENT_ATTEMPT_BEGAN);
    take_rank(fixture, STANDBY_EVENT_SPARE_GIVEN, 0);
    take_rank(fixture, STANDBY_EVENT_SPARE_GIVEN, 1);
    take_kind(fixture, STANDBY_EVENT_WORKERS_STARTED);
    expect(fixture, "tell_used 2/2; arm_timer at=0.625");
}

SCENE_TEST(a_new_node_does_not_wait_for_a_spare_that_cannot_be_ready) {
    invite(fixture);
    take_ready(fixture, 0);
    take_end(fixture, 1, true, SIGNAL_NUMBER_KILL);
    assert_int_equal(strncmp(text_string(&fixture->said), "warmed", 6), 0);
    tear_down(fixture);
    set_up(fixture, false);
    invite(fixture);
    take_rank(fixture, STANDBY_EVENT_SPARE_DIRTY, 1);
    expect(fixture, "tell_off dirty rank=1; end_all; warmed; disarm_timer");
}

SCENE_TEST(an_invitation_that_comes_too_late_warms_nothing) {
    take_kind(fixture, STANDBY_EVENT_ATTEMPT_BEGAN);
    invite(fixture);
    expect(fixture, "warmed");
    assert_int_equal(standby_plan_count(fixture->plan, STANDBY_ABSENT), 2);
}

static void wait_until(struct scene *scene, double seconds) {
    scene->now = (struct instant){(int64_t)(seconds * 1000) * 1000000};
}

/* Also where nothing else happens. */
SCENE_TEST(spares_that_are_awaited_are_told_of_until_all_are_ready) {
    start(fixture);
    take_records(fixture, 2.5, 100);
    take_rank(fixture, STANDBY_EVENT_SPARE_HELLO, 0);
    wait_until(fixture, 7.5);
    take_kind(fixture, STANDBY_EVENT_TIMER_FIRED);
    take_records(fixture, 7.5, 100);
    wait_until(fixture, 17.5);
    take_kind(fixture, STANDBY_EVENT_TIMER_FIRED);
    take_records(fixture, 17.5, 100);
    expect(fixture, "arm_timer at=30.000");
    wait_until(fixture, 30);
    take_kind(fixture, STANDBY_EVENT_TIMER_FIRED);
    expect(fixture, "tell_awaited 0/2 importing=2 unbegun=0 ended=0; arm_timer at=37.500");
    take_ready(fixture, 0);
    wait_until(fixture, 90);
    take_kind(fixture, STANDBY_EVENT_TIMER_FIRED);
    expect(fixture, "look; tell_awaited 1/2 importing=1 unbegun=0 ended=0; arm_timer at=150.000");
    take_records(fixture, 17.5, 100);
    take_ready(fixture, 1);
    take_kind(fixture, STANDBY_EVENT_TIMER_FIRED);
    wait_until(fixture, 300);
    take_kind(fixture, STANDBY_EVENT_TIMER_FIRED);
    assert_null(strstr(text_string(&fixture->said), "tell_awaited"));
}

SCENE_TEST(workers_that_are_never_quiet_are_told_of) {
    start(fixture);
    take_records(fixture, 0, 100);
    wait_until(fixture, 30);
    take_kind(fixture, STANDBY_EVENT_TIMER_FIRED);
    expect(fixture, "look; tell_awaited 0/2 importing=0 unbegun=2 ended=0");
    take_kind(fixture, STANDBY_EVENT_WORKERS_ENDING);
    wait_until(fixture, 120);
    take_kind(fixture, STANDBY_EVENT_TIMER_FIRED);
    expect(fixture, "");
}

SCENE_TEST(a_spare_that_has_died_is_told_of_until_there_is_another) {
    make_ready(fixture);
    take_end(fixture, 1, true, SIGNAL_NUMBER_KILL);
    wait_seconds(fixture, STANDBY_AWAITED_SECONDS);
    take_kind(fixture, STANDBY_EVENT_TIMER_FIRED);
    assert_non_null(
        strstr(text_string(&fixture->said), "tell_awaited 1/2 importing=0 unbegun=0 ended=1"));
}

TEST(nobody_awaits_what_there_will_not_be) {
    struct scene scene;
    set_up(&scene, false); /* no hello */
    take_kind(&scene, STANDBY_EVENT_WORKERS_STARTED);
    take_records(&scene, 60, 0);
    wait_until(&scene, 60);
    take_kind(&scene, STANDBY_EVENT_TIMER_FIRED);
    assert_null(strstr(text_string(&scene.said), "tell_awaited"));
    tear_down(&scene);
    set_up(&scene, true); /* no memory */
    make_ready(&scene);
    take(&scene, (struct standby_event){
                     .kind = STANDBY_EVENT_RECORDS, .records = {duration_from_seconds(3), 100, 1}});
    wait_until(&scene, 60);
    take_kind(&scene, STANDBY_EVENT_TIMER_FIRED);
    assert_null(strstr(text_string(&scene.said), "tell_awaited"));
    take_kind(&scene, STANDBY_EVENT_WORKERS_ENDING);
    take_kind(&scene, STANDBY_EVENT_ATTEMPT_BEGAN);
    take_kind(&scene, STANDBY_EVENT_WORKERS_STARTED);
    assert_non_null(strstr(text_string(&scene.said), "tell_used 0/2 cold=scarce,scarce"));
    tear_down(&scene);
}

SCENE_TEST(why_a_worker_is_cold_is_what_its_spare_did_when_it_was_wanted) {
    make_ready(fixture);
    take_records(fixture, STANDBY_SETTLED_SECONDS, 101);
    take_end(fixture, 1, true, SIGNAL_NUMBER_KILL);
    take_kind(fixture, STANDBY_EVENT_WORKERS_ENDING);
    take_kind(fixture, STANDBY_EVENT_ATTEMPT_BEGAN);
    take_ready(fixture, 0); /* too late */
    take_kind(fixture, STANDBY_EVENT_WORKERS_STARTED);
    assert_non_null(strstr(text_string(&fixture->said), "tell_used 0/2 cold=learning,ended"));
    take_kind(fixture, STANDBY_EVENT_WORKERS_ENDING);
    take_kind(fixture, STANDBY_EVENT_ATTEMPT_BEGAN);
    take_rank(fixture, STANDBY_EVENT_SPARE_DIRTY, 0); /* its last words */
    take_kind(fixture, STANDBY_EVENT_WORKERS_STARTED);
    assert_non_null(strstr(text_string(&fixture->said), "tell_used 0/2 cold=off,ended"));
}

static void tell_parent(struct scene *scene, bool has_parent) {
    take(scene,
        (struct standby_event){.kind = STANDBY_EVENT_PARENT, .parent = {.is_there = has_parent}});
}

static void use_all(struct scene *scene) {
    take_kind(scene, STANDBY_EVENT_WORKERS_ENDING);
    take_kind(scene, STANDBY_EVENT_ATTEMPT_BEGAN);
    take_rank(scene, STANDBY_EVENT_SPARE_GIVEN, 0);
    take_rank(scene, STANDBY_EVENT_SPARE_GIVEN, 1);
    take_kind(scene, STANDBY_EVENT_WORKERS_STARTED);
}

/* Until the new workers have had the CPUs for their first steps. */
static void wait_ahead(struct scene *scene) {
    wait_seconds(scene, STANDBY_AHEAD_MILLISECONDS / 1000.0);
    take_kind(scene, STANDBY_EVENT_TIMER_FIRED);
}

SCENE_TEST(
    spares_that_are_forked_are_made_when_new_workers_have_had_the_cpus_for_their_first_steps) {
    start(fixture);
    take_records(fixture, 2.5, 100);
    expect(fixture, "warm rank=0; arm_timer at=7.500");
    tell_parent(fixture, true);
    expect(fixture, "warm rank=1"); /* they do not wait for each other */
    take_ready(fixture, 1);
    take_ready(fixture, 0);
    expect(fixture, "tell_ready 2/2 bytes=2000");
    use_all(fixture);
    expect(fixture, "tell_used 2/2; arm_timer at=2.900");
    wait_ahead(fixture);
    expect(fixture, "warm rank=0; warm rank=1; arm_timer at=3.125");
}

TEST(what_an_unsuited_parent_names_is_published_by_one_node) {
    static const struct standby_event unsuited = {
        .kind = STANDBY_EVENT_PARENT, .parent = {.has_cut = true}};
    struct scene scene;
    set_up(&scene, false);
    start(&scene);
    take(&scene, unsuited);
    assert_null(strstr(text_string(&scene.said), "publish"));
    take(&scene, (struct standby_event){
                     .kind = STANDBY_EVENT_WORKERS_STARTED, .is_first = true, .may_restart = true});
    take(&scene, unsuited);
    assert_non_null(strstr(text_string(&scene.said), "publish"));
    tear_down(&scene);
}

SCENE_TEST(a_crash_loop_makes_spares_ahead_a_few_times_a_minute) {
    int made = 0;
    make_ready(fixture);
    tell_parent(fixture, true);
    for (int i = 0; i < 3 * STANDBY_FORKS_MAXIMUM; i++) {
        use_all(fixture);
        wait_ahead(fixture);
        made += state_of(fixture, 0) == STANDBY_WARMING ? 1 : 0;
        take_ready(fixture, 0);
        take_ready(fixture, 1);
    }
    assert_int_equal(made, STANDBY_FORKS_MAXIMUM);
    take_records(fixture, 2.5, 100);
    assert_int_equal(state_of(fixture, 0), STANDBY_WARMING); /* quiet workers are no crash loop */
    take_ready(fixture, 0);
    take_ready(fixture, 1);
    wait_seconds(fixture, 60);
    use_all(fixture);
    wait_ahead(fixture);
    assert_int_equal(state_of(fixture, 1), STANDBY_WARMING);
}

SCENE_TEST(what_runs_for_the_last_time_needs_no_spares_ahead) {
    make_ready(fixture);
    tell_parent(fixture, true);
    take_kind(fixture, STANDBY_EVENT_WORKERS_ENDING);
    take_kind(fixture, STANDBY_EVENT_ATTEMPT_BEGAN);
    take_rank(fixture, STANDBY_EVENT_SPARE_GIVEN, 0);
    take(fixture, (struct standby_event){.kind = STANDBY_EVENT_WORKERS_STARTED});
    assert_int_equal(state_of(fixture, 0), STANDBY_GIVEN);
}

TEST(no_plan_has_no_spares) {
    assert_int_equal(standby_plan_state(NULL, 0), STANDBY_ABSENT);
    assert_int_equal(standby_plan_count(NULL, STANDBY_READY), 0);
    assert_int_equal(standby_plan_used(NULL), 0);
    assert_int_equal(standby_plan_off(NULL), STANDBY_OFF_NONE);
    standby_plan_free(NULL);
}
