/* SPDX-License-Identifier: BSD-3-Clause */
/* What holds a restart up or forbids it: the check of the node, and attempts that get no further.
 */
#include "unit.h"

#include "agent_machine_scene.h"

static struct scene scene_of(struct agent_settings settings, enum company company) {
    struct scene scene = {0};
    settings.worker_count = 3;
    settings.max_restarts = 9;
    settings.shutdown_timeout = duration_from_seconds(30);
    settings.has_peers = company != ALONE;
    settings.may_lose_peers = company == AMONG_CHANGING_PEERS;
    agent_machine_init(&scene.machine, &settings);
    return scene;
}

static struct scene checked_scene(enum company company) {
    return scene_of((struct agent_settings){.checks_node = true}, company);
}

static struct agent_event stepped(bool is_new) {
    return (struct agent_event){.kind = AGENT_EVENT_STEPPED, .is_new = is_new};
}

TEST(a_node_joins_only_when_its_check_has_passed) {
    struct scene scene = checked_scene(ALONE);
    step(&scene, plain(AGENT_EVENT_START), "check_node");
    step(&scene, plain(AGENT_EVENT_TIMER_FIRED), "");
    step(&scene, plain(AGENT_EVENT_CHECK_PASSED), "join ticket=1 attempt=0");
    step(&scene, plain(AGENT_EVENT_CHECK_PASSED), "");
    agent_machine_clear(&scene.machine);
}

TEST(a_node_whose_check_fails_never_joins) {
    struct scene scene = checked_scene(AMONG_CHANGING_PEERS);
    step(&scene, plain(AGENT_EVENT_START), "check_node");
    step(&scene, plain(AGENT_EVENT_CHECK_FAILED), "finish unfit");
    scene_end(&scene);
}

TEST(a_signal_ends_a_node_that_is_being_checked) {
    struct scene scene = checked_scene(AMONG_PEERS);
    step(&scene, plain(AGENT_EVENT_START), "check_node");
    step(&scene, signalled(15), "finish signalled=15");
    scene_end(&scene);
}

static struct scene running_checked_scene(enum company company) {
    struct scene scene = checked_scene(company);
    step(&scene, plain(AGENT_EVENT_START), "check_node");
    step(&scene, plain(AGENT_EVENT_CHECK_PASSED), "join ticket=1 attempt=0");
    step(&scene, joined(1, 0), "start_workers attempt=0");
    step(&scene, plain(AGENT_EVENT_WORKERS_STARTED), "");
    return scene;
}

TEST(after_a_failure_the_node_is_checked_beside_the_stop) {
    struct scene scene = running_checked_scene(AMONG_CHANGING_PEERS);
    step(&scene, exited(1, 3),
        "announce_restart attempt=1; signal_workers 15; arm_timer at=30.000; check_node");
    step(&scene, plain(AGENT_EVENT_CHECK_PASSED), "");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; join ticket=2 attempt=1");
    agent_machine_clear(&scene.machine);
}

TEST(a_check_that_outlasts_the_stop_holds_the_next_start_up) {
    struct scene scene = running_checked_scene(AMONG_CHANGING_PEERS);
    step(&scene, exited(1, 3),
        "announce_restart attempt=1; signal_workers 15; arm_timer at=30.000; check_node");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer");
    assert_int_equal(scene.machine.phase, AGENT_HELD);
    step(&scene, plain(AGENT_EVENT_CHECK_PASSED), "join ticket=2 attempt=1");
    agent_machine_clear(&scene.machine);
}

TEST(a_node_that_fails_its_check_after_a_failure_leaves) {
    struct scene scene = running_checked_scene(AMONG_CHANGING_PEERS);
    step(&scene, exited(1, 3),
        "announce_restart attempt=1; signal_workers 15; arm_timer at=30.000; check_node");
    step(&scene, plain(AGENT_EVENT_CHECK_FAILED), "announce_leave");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; finish unfit");
    scene_end(&scene);

    scene = running_checked_scene(AMONG_PEERS);
    step(&scene, exited(1, 3),
        "announce_restart attempt=1; signal_workers 15; arm_timer at=30.000; check_node");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer");
    step(&scene, plain(AGENT_EVENT_CHECK_FAILED), "announce_leave; finish unfit");
    scene_end(&scene);
}

TEST(a_failure_elsewhere_needs_no_check_here) {
    struct scene scene = running_checked_scene(AMONG_PEERS);
    step(&scene, peer_restart(1), "signal_workers 15; arm_timer at=30.000");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; join ticket=2 attempt=1");
    agent_machine_clear(&scene.machine);
}

TEST(a_signal_outlives_a_check_that_fails_after_it) {
    struct scene scene = running_checked_scene(AMONG_CHANGING_PEERS);
    step(&scene, exited(1, 3),
        "announce_restart attempt=1; signal_workers 15; arm_timer at=30.000; check_node");
    step(&scene, signalled(15), "announce_leave signal=15");
    step(&scene, plain(AGENT_EVENT_CHECK_FAILED), "");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; finish signalled=15");
    scene_end(&scene);
}

TEST(a_node_that_the_others_go_on_without_leaves) {
    struct scene scene = running_scene(9, AMONG_CHANGING_PEERS);
    step(
        &scene, exited(1, 3), "announce_restart attempt=1; signal_workers 15; arm_timer at=30.000");
    step(&scene, plain(AGENT_EVENT_EXCLUDED), "announce_leave");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; finish excluded");
    scene_end(&scene);

    scene = running_scene(9, AMONG_CHANGING_PEERS);
    step(
        &scene, exited(1, 3), "announce_restart attempt=1; signal_workers 15; arm_timer at=30.000");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; join ticket=2 attempt=1");
    step(&scene, plain(AGENT_EVENT_EXCLUDED), "announce_leave; finish excluded");
    scene_end(&scene);
}

/* Attempts that get no further. */

static struct scene limited_scene(int limit, double backoff, enum company company) {
    struct scene scene = scene_of((struct agent_settings){.no_progress_restarts = limit,
                                      .restart_backoff = duration_from_seconds(backoff)},
        company);
    step(&scene, plain(AGENT_EVENT_START), "join ticket=1 attempt=0");
    step(&scene, joined(1, 0), "start_workers attempt=0");
    step(&scene, plain(AGENT_EVENT_WORKERS_STARTED), "");
    return scene;
}

/* Plays a failure and the restart that follows it. */
static void fail_once(struct scene *scene, int attempt) {
    CLEARED_BY(text_clear) struct text stop = {0};
    CLEARED_BY(text_clear) struct text join = {0};
    CLEARED_BY(text_clear) struct text start = {0};
    text_append_format(
        &stop, "signal_workers 15; arm_timer at=%lld.000", (long long)scene->seconds + 30);
    text_append_format(&join, "disarm_timer; join ticket=%d attempt=%d", attempt + 2, attempt + 1);
    text_append_format(&start, "start_workers attempt=%d", attempt + 1);
    step(scene, exited(0, 1), text_string(&stop));
    step(scene, plain(AGENT_EVENT_ALL_GONE), text_string(&join));
    step(scene, joined(attempt + 2, attempt + 1), text_string(&start));
    step(scene, plain(AGENT_EVENT_WORKERS_STARTED), "");
}

TEST(the_job_ends_after_so_many_short_attempts_in_a_row) {
    struct scene scene = limited_scene(3, 0, ALONE);
    fail_once(&scene, 0);
    scene.seconds = 59;
    fail_once(&scene, 1);
    scene.seconds = 100;
    step(&scene, exited(0, 1), "signal_workers 15; arm_timer at=130.000");
    assert_true(fruitless_attempts_are_enough(&scene.machine.fruitless));
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; finish failed");
    scene_end(&scene);
}

TEST(a_long_attempt_begins_the_row_anew) {
    struct scene scene = limited_scene(2, 0, ALONE);
    fail_once(&scene, 0);
    scene.seconds = 60;
    fail_once(&scene, 1);
    assert_int_equal(scene.machine.fruitless.count, 0);
    fail_once(&scene, 2);
    step(&scene, exited(0, 1), "signal_workers 15; arm_timer at=90.000");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; finish failed");
    scene_end(&scene);
}

TEST(where_steps_are_known_only_new_ones_count) {
    struct scene scene = limited_scene(2, 0, ALONE);
    step(&scene, stepped(true), "");
    fail_once(&scene, 0);
    assert_int_equal(scene.machine.fruitless.count, 0);
    step(&scene, stepped(false), "");
    scene.seconds = 1000;
    fail_once(&scene, 1);
    assert_int_equal(scene.machine.fruitless.count, 1);
    step(&scene, stepped(false), "");
    step(&scene, stepped(true), "");
    fail_once(&scene, 2);
    assert_int_equal(scene.machine.fruitless.count, 0);
    agent_machine_clear(&scene.machine);
}

TEST(failures_of_other_nodes_count_and_changes_of_the_world_do_not) {
    struct scene scene = limited_scene(3, 0, AMONG_CHANGING_PEERS);
    step(&scene, plain(AGENT_EVENT_ROUND_OVER), "signal_workers 15; arm_timer at=30.000");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; join ticket=2 attempt=0");
    step(&scene, joined(2, 0), "start_workers attempt=0");
    step(&scene, plain(AGENT_EVENT_WORKERS_STARTED), "");
    assert_int_equal(scene.machine.fruitless.count, 0);
    step(&scene, plain(AGENT_EVENT_ROUND_OVER), "signal_workers 15; arm_timer at=30.000");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; join ticket=3 attempt=0");
    step(&scene, joined(3, 1), "start_workers attempt=1");
    assert_int_equal(scene.machine.fruitless.count, 1);
    step(&scene, plain(AGENT_EVENT_WORKERS_STARTED), "");
    step(
        &scene, exited(0, 1), "announce_restart attempt=2; signal_workers 15; arm_timer at=30.000");
    assert_int_equal(scene.machine.fruitless.count, 2);
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; join ticket=4 attempt=2");
    step(&scene, joined(4, 2), "start_workers attempt=2");
    assert_int_equal(scene.machine.fruitless.count, 2);
    step(&scene, plain(AGENT_EVENT_WORKERS_STARTED), "");
    step(&scene, exited(0, 1), "doubt_failure; signal_workers 15; arm_timer at=30.000");
    agent_machine_clear(&scene.machine);
}

TEST(the_pause_between_such_attempts_doubles_up_to_its_limit) {
    struct fruitless_attempts attempts = {.longest_pause = duration_from_seconds(1)};
    static const double pauses[] = {0, 0.1, 0.2, 0.4, 0.8, 1, 1};
    for (int count = 0; count < 7; count++) {
        attempts.count = count;
        assert_true(duration_seconds(fruitless_attempts_pause(&attempts)) == pauses[count]);
    }
    attempts.longest_pause = (struct duration){0};
    assert_int_equal(fruitless_attempts_pause(&attempts).nanoseconds, 0);
    attempts.longest_pause = duration_from_seconds(3600);
    attempts.count = 1000000;
    assert_true(duration_seconds(fruitless_attempts_pause(&attempts)) == 3600);
}

TEST(a_pause_is_from_the_failure_on_and_a_stop_may_use_it_up) {
    struct scene scene = limited_scene(0, 60, ALONE);
    step(&scene, exited(0, 1), "signal_workers 15; arm_timer at=30.000");
    scene.seconds = 1;
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; join ticket=2 attempt=1");
    agent_machine_clear(&scene.machine);
}

TEST(who_pauses_joins_when_the_timer_fires_and_not_before) {
    struct scene scene = limited_scene(0, 60, ALONE);
    scene.machine.fruitless.count = 5; /* a pause of 3.2 s follows */
    step(&scene, exited(0, 1), "signal_workers 15; arm_timer at=30.000");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; arm_timer at=3.200");
    scene.seconds = 3;
    step(&scene, plain(AGENT_EVENT_TIMER_FIRED), "");
    scene.seconds = 4;
    step(&scene, plain(AGENT_EVENT_TIMER_FIRED), "join ticket=2 attempt=1");
    agent_machine_clear(&scene.machine);
}

TEST(a_signal_and_the_end_of_the_job_end_a_pause) {
    struct scene scene = limited_scene(0, 60, AMONG_CHANGING_PEERS);
    scene.machine.fruitless.count = 5;
    step(
        &scene, exited(0, 1), "announce_restart attempt=1; signal_workers 15; arm_timer at=30.000");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; arm_timer at=3.200");
    step(&scene, signalled(15), "announce_leave signal=15; disarm_timer; finish signalled=15");
    scene_end(&scene);

    scene = limited_scene(0, 60, AMONG_PEERS);
    scene.machine.fruitless.count = 5;
    step(
        &scene, exited(0, 1), "announce_restart attempt=1; signal_workers 15; arm_timer at=30.000");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; arm_timer at=3.200");
    step(&scene, peer_restart(2), "");
    assert_int_equal(agent_machine_attempt(&scene.machine), 2);
    step(&scene, plain(AGENT_EVENT_PEER_FAILED), "disarm_timer; finish peer_failed");
    scene_end(&scene);
}

/* A window of time. */

TEST(restarts_that_are_older_than_the_window_are_given_back) {
    struct agent_settings settings = {.restart_window = duration_from_seconds(100)};
    struct scene scene = scene_of(settings, ALONE);
    scene.machine.restarts.maximum = 2;
    step(&scene, plain(AGENT_EVENT_START), "join ticket=1 attempt=0");
    step(&scene, joined(1, 0), "start_workers attempt=0");
    step(&scene, plain(AGENT_EVENT_WORKERS_STARTED), "");
    fail_once(&scene, 0);
    scene.seconds = 60;
    fail_once(&scene, 1);
    assert_int_equal(restart_policy_remaining(&scene.machine.restarts), 0);
    scene.seconds = 100;
    fail_once(&scene, 2);
    assert_int_equal(agent_machine_attempt(&scene.machine), 3);
    assert_int_equal(scene.machine.restarts.counted, 2);
    scene.seconds = 159;
    step(&scene, exited(0, 1), "signal_workers 15; arm_timer at=189.000");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; finish failed");
    scene_end(&scene);
}

TEST(a_node_that_comes_later_counts_what_the_record_tells) {
    struct agent_settings settings = {.restart_window = duration_from_seconds(100)};
    struct agent_event late = joined(1, 9);
    late.joined.ages = (struct restart_ages){.count = 2, .seconds = {1, 95}};
    for (int64_t after = 4; after <= 5; after++) {
        struct scene scene = scene_of(settings, AMONG_CHANGING_PEERS);
        scene.machine.restarts.maximum = 2;
        step(&scene, plain(AGENT_EVENT_START), "join ticket=1 attempt=0");
        step(&scene, late, "start_workers attempt=9");
        step(&scene, plain(AGENT_EVENT_WORKERS_STARTED), "");
        scene.seconds = after;
        step(&scene, exited(0, 1),
            after == 4 ? "doubt_failure; signal_workers 15; arm_timer at=34.000"
                       : "announce_restart attempt=10; signal_workers 15; arm_timer at=35.000");
        agent_machine_clear(&scene.machine);
    }
}

TEST(fixed_nodes_follow_the_one_that_has_a_restart_left) {
    struct agent_settings settings = {.restart_window = duration_from_seconds(100)};
    struct scene scene = scene_of(settings, AMONG_PEERS);
    scene.machine.restarts.maximum = 1;
    step(&scene, plain(AGENT_EVENT_START), "join ticket=1 attempt=0");
    step(&scene, joined(1, 0), "start_workers attempt=0");
    step(&scene, plain(AGENT_EVENT_WORKERS_STARTED), "");
    step(&scene, peer_restart(1), "signal_workers 15; arm_timer at=30.000");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; join ticket=2 attempt=1");
    step(&scene, joined(2, 1), "start_workers attempt=1");
    step(&scene, plain(AGENT_EVENT_WORKERS_STARTED), "");
    scene.seconds = 99;
    step(&scene, peer_restart(2), "signal_workers 15; arm_timer at=129.000");
    agent_machine_clear(&scene.machine);
}
