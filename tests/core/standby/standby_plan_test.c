/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <string.h>

#include "core/standby/standby_plan.h"
#include "standby_scene.h"

TEST(spares_are_warmed_one_after_the_other_beside_quiet_workers) {
    struct scene scene;
    set_up(&scene, false);
    start(&scene);
    expect(&scene, "");
    take_records(&scene, 2.5, 100);
    expect(&scene, "warm rank=0; arm_timer at=7.500");
    assert_int_equal(state_of(&scene, 0), STANDBY_WARMING);
    assert_int_equal(state_of(&scene, 1), STANDBY_DUE);
    take_ready(&scene, 0);
    expect(&scene, "warm rank=1");
    take_ready(&scene, 1);
    expect(&scene, "tell_ready 2/2 bytes=2000");
    assert_int_equal(standby_plan_count(scene.plan, STANDBY_READY), 2);
    tear_down(&scene);
}

TEST(the_first_look_is_soon) {
    struct scene scene;
    set_up(&scene, false);
    take_kind(&scene, STANDBY_EVENT_ATTEMPT_BEGAN);
    take_kind(&scene, STANDBY_EVENT_WORKERS_STARTED);
    expect(&scene, "arm_timer at=0.625");
    tear_down(&scene);
}

TEST(workers_that_still_import_are_looked_at_when_they_may_be_quiet) {
    struct scene scene;
    set_up(&scene, false);
    start(&scene);
    take_records(&scene, 1, 50);
    expect(&scene, "arm_timer at=3.125");
    take_records(&scene, 2.49, 50);
    expect(&scene, "arm_timer at=2.600");
    assert_int_equal(state_of(&scene, 0), STANDBY_ABSENT);
    tear_down(&scene);
}

TEST(looks_at_quiet_workers_become_rare) {
    struct scene scene;
    set_up(&scene, false);
    make_ready(&scene);
    double expected = 10;
    for (int i = 0; i < 12; i++) {
        wait_seconds(&scene, STANDBY_LOOK_SECONDS);
        double at = duration_seconds((struct duration){scene.now.nanoseconds});
        take_kind(&scene, STANDBY_EVENT_TIMER_FIRED);
        expect(&scene, "look");
        take_records(&scene, 60, 100);
        char *words = text_format("arm_timer at=%.3f", at + expected);
        expect(&scene, words);
        free(words);
        expected = 2 * expected > STANDBY_LOOK_SECONDS ? STANDBY_LOOK_SECONDS : 2 * expected;
    }
    tear_down(&scene);
}

TEST(without_a_hello_there_is_no_spare_and_that_is_told_once) {
    struct scene scene;
    int told = 0;
    set_up(&scene, false);
    take_kind(&scene, STANDBY_EVENT_WORKERS_STARTED);
    for (int i = 0; i < 8; i++) {
        wait_seconds(&scene, STANDBY_LOOK_SECONDS);
        take_kind(&scene, STANDBY_EVENT_TIMER_FIRED);
        take_records(&scene, 60, 0);
        told += strstr(text_string(&scene.said), "tell_silent") != NULL ? 1 : 0;
        assert_null(strstr(text_string(&scene.said), "warm"));
    }
    assert_int_equal(told, 1);
    tear_down(&scene);
}

TEST(only_ranks_whose_worker_has_said_hello_have_spares) {
    struct scene scene;
    set_up(&scene, false);
    take_kind(&scene, STANDBY_EVENT_WORKERS_STARTED);
    take_rank(&scene, STANDBY_EVENT_HELLO, 1);
    take_records(&scene, 60, 1);
    assert_int_equal(state_of(&scene, 0), STANDBY_ABSENT);
    assert_int_equal(state_of(&scene, 1), STANDBY_WARMING);
    take_ready(&scene, 1);
    expect(&scene, "tell_ready 1/2 bytes=1000");
    tear_down(&scene);
}

TEST(given_spares_are_told_of_and_warmed_again) {
    struct scene scene;
    set_up(&scene, false);
    make_ready(&scene);
    take_kind(&scene, STANDBY_EVENT_WORKERS_ENDING);
    expect(&scene, "disarm_timer");
    take_kind(&scene, STANDBY_EVENT_ATTEMPT_BEGAN);
    expect(&scene, "");
    take_rank(&scene, STANDBY_EVENT_SPARE_GIVEN, 0);
    take_rank(&scene, STANDBY_EVENT_SPARE_GIVEN, 1);
    take_kind(&scene, STANDBY_EVENT_WORKERS_STARTED);
    expect(&scene, "tell_used 2/2; arm_timer at=3.125");
    assert_int_equal(standby_plan_used(scene.plan), 2);
    take_records(&scene, 2.5, 100);
    expect(&scene, "warm rank=0; arm_timer at=7.500");
    take_kind(&scene, STANDBY_EVENT_WORKERS_ENDING);
    take_kind(&scene, STANDBY_EVENT_ATTEMPT_BEGAN);
    assert_int_equal(standby_plan_count(scene.plan, STANDBY_GIVEN), 0);
    take_kind(&scene, STANDBY_EVENT_WORKERS_STARTED);
    expect(&scene, "tell_used 0/2 cold=importing,due; arm_timer at=3.125");
    tear_down(&scene);
}

TEST(a_spare_goes_on_warming_while_workers_are_started_again) {
    struct scene scene;
    set_up(&scene, false);
    start(&scene);
    take_records(&scene, 2.5, 100);
    take_kind(&scene, STANDBY_EVENT_WORKERS_ENDING);
    expect(&scene, "arm_timer at=122.500");
    take_ready(&scene, 0);
    expect(&scene, "disarm_timer"); /* rank 1 waits until workers run */
    assert_int_equal(state_of(&scene, 0), STANDBY_READY);
    assert_int_equal(state_of(&scene, 1), STANDBY_DUE);
    tear_down(&scene);
}

TEST(a_spare_that_does_not_fit_is_made_anew) {
    struct scene scene;
    set_up(&scene, false);
    make_ready(&scene);
    take_kind(&scene, STANDBY_EVENT_ATTEMPT_BEGAN);
    take_rank(&scene, STANDBY_EVENT_SPARE_REFUSED, 0);
    take_rank(&scene, STANDBY_EVENT_SPARE_GIVEN, 1);
    take_kind(&scene, STANDBY_EVENT_WORKERS_STARTED);
    expect(&scene, "tell_used 1/2 cold=refused,not; arm_timer at=3.125");
    take_records(&scene, 2.5, 100);
    assert_int_equal(state_of(&scene, 0), STANDBY_WARMING);
    tear_down(&scene);
}

TEST(a_dirty_spare_is_the_last_one) {
    struct scene scene;
    set_up(&scene, false);
    start(&scene);
    take_records(&scene, 2.5, 100);
    take_ready(&scene, 0);
    take_rank(&scene, STANDBY_EVENT_SPARE_DIRTY, 1);
    expect(&scene, "tell_off dirty rank=1; end_all; disarm_timer");
    assert_int_equal(standby_plan_off(scene.plan), STANDBY_OFF_DIRTY);
    take_end(&scene, 1, false, 77);
    expect(&scene, "");
    take_kind(&scene, STANDBY_EVENT_ATTEMPT_BEGAN);
    take_kind(&scene, STANDBY_EVENT_WORKERS_STARTED);
    expect(&scene, "tell_used 0/2 cold=off,off");
    take_records(&scene, 60, 100);
    expect(&scene, "");
    tear_down(&scene);
}

TEST(a_spare_that_ends_by_itself_has_gone_another_way) {
    struct scene scene;
    set_up(&scene, false);
    start(&scene);
    take_records(&scene, 2.5, 100);
    take_end(&scene, 0, false, 0);
    expect(&scene, "tell_off ended rank=0; end_all; disarm_timer");
    tear_down(&scene);
}

TEST(a_spare_that_does_not_reach_the_hook_ends_them_all) {
    struct scene scene;
    set_up(&scene, false);
    start(&scene);
    take_records(&scene, 2.5, 100);
    wait_seconds(&scene, STANDBY_WARMING_SECONDS);
    take_kind(&scene, STANDBY_EVENT_TIMER_FIRED);
    expect(&scene, "tell_off late rank=0; end_all");
    tear_down(&scene);
}

TEST(a_spare_that_has_reached_the_hook_may_take_long) {
    struct scene scene;
    set_up(&scene, false);
    start(&scene);
    take_records(&scene, 2.5, 100);
    take_rank(&scene, STANDBY_EVENT_SPARE_HELLO, 0);
    wait_seconds(&scene, STANDBY_WARMING_SECONDS);
    take_kind(&scene, STANDBY_EVENT_TIMER_FIRED);
    assert_int_equal(state_of(&scene, 0), STANDBY_WARMING);
    wait_seconds(&scene, STANDBY_PATIENCE_SECONDS);
    take_kind(&scene, STANDBY_EVENT_TIMER_FIRED);
    assert_int_equal(strncmp(text_string(&scene.said), "end_spare rank=0", 16), 0);
    assert_int_equal(state_of(&scene, 0), STANDBY_DUE);
    assert_int_equal(state_of(&scene, 1), STANDBY_WARMING);
    tear_down(&scene);
}

TEST(spares_that_die_are_made_anew_later_and_later_and_then_no_more) {
    struct scene scene;
    set_up(&scene, false);
    make_ready(&scene);
    take_end(&scene, 0, true, SIGNAL_NUMBER_KILL);
    assert_int_equal(state_of(&scene, 0), STANDBY_DUE);
    wait_seconds(&scene, STANDBY_BACKOFF_SECONDS - 1);
    take_kind(&scene, STANDBY_EVENT_TIMER_FIRED);
    assert_int_equal(state_of(&scene, 0), STANDBY_DUE);
    wait_seconds(&scene, 1);
    take_kind(&scene, STANDBY_EVENT_TIMER_FIRED);
    assert_int_equal(state_of(&scene, 0), STANDBY_WARMING);
    take_end(&scene, 0, true, SIGNAL_NUMBER_KILL);
    wait_seconds(&scene, 2 * STANDBY_BACKOFF_SECONDS - 1);
    take_kind(&scene, STANDBY_EVENT_TIMER_FIRED);
    assert_int_equal(state_of(&scene, 0), STANDBY_DUE);
    wait_seconds(&scene, 1);
    take_kind(&scene, STANDBY_EVENT_TIMER_FIRED);
    take_end(&scene, 0, true, SIGNAL_NUMBER_KILL);
    assert_int_equal(strncmp(text_string(&scene.said), "tell_off deaths rank=0; end_all", 31), 0);
    tear_down(&scene);
}

TEST(a_program_that_fails_above_its_line_counts_as_a_death) {
    struct scene scene;
    set_up(&scene, false);
    start(&scene);
    take_records(&scene, 2.5, 100);
    take_rank(&scene, STANDBY_EVENT_SPARE_FAILED, 0);
    take_rank(&scene, STANDBY_EVENT_SPARE_FAILED, 0); /* it has ended, and is not there */
    wait_seconds(&scene, STANDBY_BACKOFF_SECONDS - 1);
    take_kind(&scene, STANDBY_EVENT_TIMER_FIRED);
    assert_int_equal(standby_plan_count(scene.plan, STANDBY_DUE), 2); /* it would fail as well */
    wait_seconds(&scene, 1);
    take_kind(&scene, STANDBY_EVENT_TIMER_FIRED);
    assert_int_equal(state_of(&scene, 0), STANDBY_WARMING);
    take_rank(&scene, STANDBY_EVENT_SPARE_FAILED, 0);
    wait_seconds(&scene, 2 * STANDBY_BACKOFF_SECONDS);
    take_kind(&scene, STANDBY_EVENT_TIMER_FIRED);
    take_rank(&scene, STANDBY_EVENT_SPARE_FAILED, 0);
    assert_int_equal(strncmp(text_string(&scene.said), "tell_off deaths rank=0; end_all", 31), 0);
    tear_down(&scene);
}

TEST(the_last_attempt_needs_no_spares) {
    struct scene scene;
    set_up(&scene, false);
    take(&scene, (struct standby_event){.kind = STANDBY_EVENT_WORKERS_STARTED});
    expect(&scene, "");
    take_rank(&scene, STANDBY_EVENT_HELLO, 0);
    take_records(&scene, 60, 10);
    expect(&scene, "");
    tear_down(&scene);
}

TEST(the_end_of_the_job_ends_all) {
    struct scene scene;
    set_up(&scene, false);
    make_ready(&scene);
    take_kind(&scene, STANDBY_EVENT_JOB_ENDING);
    expect(&scene, "end_all; disarm_timer");
    take_end(&scene, 0, true, SIGNAL_NUMBER_KILL);
    take_ready(&scene, 1);
    expect(&scene, "");
    assert_int_equal(standby_plan_count(scene.plan, STANDBY_ABSENT), 2);
    tear_down(&scene);
}

TEST(auto_leaves_most_of_the_memory_to_others) {
    struct scene scene;
    set_up(&scene, true);
    make_ready(&scene);
    take(&scene, (struct standby_event){.kind = STANDBY_EVENT_RECORDS,
                     .records = {duration_from_seconds(3), 100, 2 * 1000 * STANDBY_MEMORY_PART}});
    assert_int_equal(standby_plan_count(scene.plan, STANDBY_READY), 2);
    struct standby_event scarce = {.kind = STANDBY_EVENT_RECORDS,
        .records = {duration_from_seconds(3), 100, 2 * 1000 * STANDBY_MEMORY_PART - 1}};
    take(&scene, scarce);
    assert_int_equal(strncmp(text_string(&scene.said), "tell_scarce; end_all", 20), 0);
    assert_int_equal(standby_plan_count(scene.plan, STANDBY_ABSENT), 2);
    take(&scene, scarce);
    assert_null(strstr(text_string(&scene.said), "tell_scarce"));
    take_records(&scene, 3, 100);
    assert_int_equal(state_of(&scene, 0), STANDBY_WARMING);
    tear_down(&scene);
}

TEST(auto_begins_none_where_one_of_a_usual_size_would_take_too_much) {
    struct scene scene;
    struct standby_event records = {.kind = STANDBY_EVENT_RECORDS,
        .records = {duration_from_seconds(3), 100, 2 * 1000 * STANDBY_MEMORY_PART - 1}};
    set_up(&scene, true);
    start(&scene);
    take(&scene, records);
    assert_int_equal(strncmp(text_string(&scene.said), "tell_scarce; end_all", 20), 0);
    assert_int_equal(state_of(&scene, 0), STANDBY_ABSENT);
    records.records.memory++;
    take(&scene, records);
    assert_int_equal(state_of(&scene, 0), STANDBY_WARMING);
    tear_down(&scene);
}

TEST(auto_begins_none_on_a_new_node_without_room) {
    struct scene scene;
    set_up(&scene, true);
    take(&scene, (struct standby_event){.kind = STANDBY_EVENT_INVITED,
                     .records = {.modules = 100, .memory = 2 * 1000 * STANDBY_MEMORY_PART - 1}});
    expect(&scene, "tell_scarce; end_all; warmed");
    tear_down(&scene);
}

static void invite(struct scene *scene) {
    take(scene, (struct standby_event){.kind = STANDBY_EVENT_INVITED, .records.modules = 100});
}

TEST(a_new_node_warms_all_at_once_and_says_when_all_are_ready) {
    struct scene scene;
    set_up(&scene, false);
    invite(&scene);
    expect(&scene, "warm rank=0 alone; warm rank=1 alone; arm_timer at=120.000");
    take_ready(&scene, 1);
    expect(&scene, "");
    take_ready(&scene, 0);
    expect(&scene, "warmed; tell_ready 2/2 bytes=2000; disarm_timer");
    take_kind(&scene, STANDBY_EVENT_ATTEMPT_BEGAN);
    take_rank(&scene, STANDBY_EVENT_SPARE_GIVEN, 0);
    take_rank(&scene, STANDBY_EVENT_SPARE_GIVEN, 1);
    take_kind(&scene, STANDBY_EVENT_WORKERS_STARTED);
    expect(&scene, "tell_used 2/2; arm_timer at=0.625");
    tear_down(&scene);
}

TEST(a_new_node_does_not_wait_for_a_spare_that_cannot_be_ready) {
    struct scene scene;
    set_up(&scene, false);
    invite(&scene);
    take_ready(&scene, 0);
    take_end(&scene, 1, true, SIGNAL_NUMBER_KILL);
    assert_int_equal(strncmp(text_string(&scene.said), "warmed", 6), 0);
    tear_down(&scene);
    set_up(&scene, false);
    invite(&scene);
    take_rank(&scene, STANDBY_EVENT_SPARE_DIRTY, 1);
    expect(&scene, "tell_off dirty rank=1; end_all; warmed; disarm_timer");
    tear_down(&scene);
}

TEST(an_invitation_that_comes_too_late_warms_nothing) {
    struct scene scene;
    set_up(&scene, false);
    take_kind(&scene, STANDBY_EVENT_ATTEMPT_BEGAN);
    invite(&scene);
    expect(&scene, "warmed");
    assert_int_equal(standby_plan_count(scene.plan, STANDBY_ABSENT), 2);
    tear_down(&scene);
}

static void start_first(struct scene *scene, bool is_first) {
    take_kind(scene, STANDBY_EVENT_ATTEMPT_BEGAN);
    take(scene,
        (struct standby_event){
            .kind = STANDBY_EVENT_WORKERS_STARTED, .is_first = is_first, .may_restart = true});
    wait_seconds(scene, 2.5);
    take_kind(scene, STANDBY_EVENT_TIMER_FIRED);
    take_rank(scene, STANDBY_EVENT_HELLO, 0);
}

TEST(what_was_learned_is_published_once_by_one_node) {
    struct scene scene;
    set_up(&scene, false);
    start_first(&scene, true);
    take_records(&scene, 1, 100);
    assert_null(strstr(text_string(&scene.said), "publish"));
    take_records(&scene, 2.5, 100);
    assert_int_equal(strncmp(text_string(&scene.said), "publish", 7), 0);
    take_records(&scene, 2.5, 100);
    assert_null(strstr(text_string(&scene.said), "publish"));
    take_records(&scene, 2.5, 101);
    assert_int_equal(strncmp(text_string(&scene.said), "publish", 7), 0);
    tear_down(&scene);
    set_up(&scene, false);
    start_first(&scene, false);
    take_records(&scene, 2.5, 100);
    assert_null(strstr(text_string(&scene.said), "publish"));
    tear_down(&scene);
}

static void wait_until(struct scene *scene, double seconds) {
    scene->now = (struct instant){(int64_t)(seconds * 1000) * 1000000};
}

/* Also where nothing else happens. */
TEST(spares_that_are_awaited_are_told_of_until_all_are_ready) {
    struct scene scene;
    set_up(&scene, false);
    start(&scene);
    take_records(&scene, 2.5, 100);
    take_rank(&scene, STANDBY_EVENT_SPARE_HELLO, 0);
    wait_until(&scene, 7.5);
    take_kind(&scene, STANDBY_EVENT_TIMER_FIRED);
    take_records(&scene, 7.5, 100);
    wait_until(&scene, 17.5);
    take_kind(&scene, STANDBY_EVENT_TIMER_FIRED);
    take_records(&scene, 17.5, 100);
    expect(&scene, "arm_timer at=30.000");
    wait_until(&scene, 30);
    take_kind(&scene, STANDBY_EVENT_TIMER_FIRED);
    expect(&scene, "tell_awaited 0/2 importing=2 unbegun=0 ended=0; arm_timer at=37.500");
    take_ready(&scene, 0);
    wait_until(&scene, 90);
    take_kind(&scene, STANDBY_EVENT_TIMER_FIRED);
    expect(&scene, "look; tell_awaited 1/2 importing=1 unbegun=0 ended=0; arm_timer at=150.000");
    take_records(&scene, 17.5, 100);
    take_ready(&scene, 1);
    take_kind(&scene, STANDBY_EVENT_TIMER_FIRED);
    wait_until(&scene, 300);
    take_kind(&scene, STANDBY_EVENT_TIMER_FIRED);
    assert_null(strstr(text_string(&scene.said), "tell_awaited"));
    tear_down(&scene);
}

TEST(workers_that_are_never_quiet_are_told_of) {
    struct scene scene;
    set_up(&scene, false);
    start(&scene);
    take_records(&scene, 0, 100);
    wait_until(&scene, 30);
    take_kind(&scene, STANDBY_EVENT_TIMER_FIRED);
    expect(&scene, "look; tell_awaited 0/2 importing=0 unbegun=2 ended=0");
    take_kind(&scene, STANDBY_EVENT_WORKERS_ENDING);
    wait_until(&scene, 120);
    take_kind(&scene, STANDBY_EVENT_TIMER_FIRED);
    expect(&scene, "");
    tear_down(&scene);
}

TEST(a_spare_that_has_died_is_told_of_until_there_is_another) {
    struct scene scene;
    set_up(&scene, false);
    make_ready(&scene);
    take_end(&scene, 1, true, SIGNAL_NUMBER_KILL);
    wait_seconds(&scene, STANDBY_AWAITED_SECONDS);
    take_kind(&scene, STANDBY_EVENT_TIMER_FIRED);
    assert_non_null(
        strstr(text_string(&scene.said), "tell_awaited 1/2 importing=0 unbegun=0 ended=1"));
    tear_down(&scene);
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

TEST(why_a_worker_is_cold_is_what_its_spare_did_when_it_was_wanted) {
    struct scene scene;
    set_up(&scene, false);
    make_ready(&scene);
    take_records(&scene, STANDBY_SETTLED_SECONDS, 101);
    take_end(&scene, 1, true, SIGNAL_NUMBER_KILL);
    take_kind(&scene, STANDBY_EVENT_WORKERS_ENDING);
    take_kind(&scene, STANDBY_EVENT_ATTEMPT_BEGAN);
    take_ready(&scene, 0); /* too late */
    take_kind(&scene, STANDBY_EVENT_WORKERS_STARTED);
    assert_non_null(strstr(text_string(&scene.said), "tell_used 0/2 cold=learning,ended"));
    take_kind(&scene, STANDBY_EVENT_WORKERS_ENDING);
    take_kind(&scene, STANDBY_EVENT_ATTEMPT_BEGAN);
    take_rank(&scene, STANDBY_EVENT_SPARE_DIRTY, 0); /* its last words */
    take_kind(&scene, STANDBY_EVENT_WORKERS_STARTED);
    assert_non_null(strstr(text_string(&scene.said), "tell_used 0/2 cold=off,ended"));
    tear_down(&scene);
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

TEST(spares_that_are_forked_are_made_when_new_workers_have_had_the_cpus_for_their_first_steps) {
    struct scene scene;
    set_up(&scene, false);
    start(&scene);
    take_records(&scene, 2.5, 100);
    expect(&scene, "warm rank=0; arm_timer at=7.500");
    tell_parent(&scene, true);
    expect(&scene, "warm rank=1"); /* they do not wait for each other */
    take_ready(&scene, 1);
    take_ready(&scene, 0);
    expect(&scene, "tell_ready 2/2 bytes=2000");
    use_all(&scene);
    expect(&scene, "tell_used 2/2; arm_timer at=2.900");
    wait_ahead(&scene);
    expect(&scene, "warm rank=0; warm rank=1; arm_timer at=3.125");
    tear_down(&scene);
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

TEST(a_crash_loop_makes_spares_ahead_a_few_times_a_minute) {
    struct scene scene;
    int made = 0;
    set_up(&scene, false);
    make_ready(&scene);
    tell_parent(&scene, true);
    for (int i = 0; i < 3 * STANDBY_FORKS_MAXIMUM; i++) {
        use_all(&scene);
        wait_ahead(&scene);
        made += state_of(&scene, 0) == STANDBY_WARMING ? 1 : 0;
        take_ready(&scene, 0);
        take_ready(&scene, 1);
    }
    assert_int_equal(made, STANDBY_FORKS_MAXIMUM);
    take_records(&scene, 2.5, 100);
    assert_int_equal(state_of(&scene, 0), STANDBY_WARMING); /* quiet workers are no crash loop */
    take_ready(&scene, 0);
    take_ready(&scene, 1);
    wait_seconds(&scene, 60);
    use_all(&scene);
    wait_ahead(&scene);
    assert_int_equal(state_of(&scene, 1), STANDBY_WARMING);
    tear_down(&scene);
}

TEST(without_a_parent_spares_wait_for_quiet_workers_again) {
    struct scene scene;
    set_up(&scene, false);
    make_ready(&scene);
    tell_parent(&scene, true);
    tell_parent(&scene, false);
    use_all(&scene);
    expect(&scene, "tell_used 2/2; arm_timer at=3.125");
    take_records(&scene, 2.5, 100);
    expect(&scene, "warm rank=0; arm_timer at=7.500");
    tear_down(&scene);
}

TEST(what_runs_for_the_last_time_needs_no_spares_ahead) {
    struct scene scene;
    set_up(&scene, false);
    make_ready(&scene);
    tell_parent(&scene, true);
    take_kind(&scene, STANDBY_EVENT_WORKERS_ENDING);
    take_kind(&scene, STANDBY_EVENT_ATTEMPT_BEGAN);
    take_rank(&scene, STANDBY_EVENT_SPARE_GIVEN, 0);
    take(&scene, (struct standby_event){.kind = STANDBY_EVENT_WORKERS_STARTED});
    assert_int_equal(state_of(&scene, 0), STANDBY_GIVEN);
    tear_down(&scene);
}

TEST(no_plan_has_no_spares) {
    assert_int_equal(standby_plan_state(NULL, 0), STANDBY_ABSENT);
    assert_int_equal(standby_plan_count(NULL, STANDBY_READY), 0);
    assert_int_equal(standby_plan_used(NULL), 0);
    assert_int_equal(standby_plan_off(NULL), STANDBY_OFF_NONE);
    standby_plan_free(NULL);
}
