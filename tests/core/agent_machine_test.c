/* SPDX-License-Identifier: BSD-3-Clause */
/* One test per rule. A scene is an agent with three workers, 30 s of shutdown timeout, and a clock
 * in seconds; each step is checked against the transcript of its effects. */
#include "unit.h"

#include "core/agent_machine.h"
#include "core/agent_transcript.h"

struct scene {
    struct agent_machine machine;
    int64_t seconds;
};

static struct scene scene_new(int max_restarts) {
    struct scene scene = {0};
    struct agent_settings settings = {
        .worker_count = 3,
        .max_restarts = max_restarts,
        .shutdown_timeout = duration_from_seconds(30),
    };
    agent_machine_init(&scene.machine, &settings);
    return scene;
}

static void step(struct scene *scene, struct agent_event event, const char *expected) {
    event.now = (struct instant){.nanoseconds = scene->seconds * 1000000000};
    struct agent_effects effects;
    agent_machine_step(&scene->machine, &event, &effects);
    struct text transcript = {0};
    for (size_t i = 0; i < effects.count; i++) {
        text_append(&transcript, i == 0 ? "" : "; ");
        agent_effect_describe(&effects.items[i], &transcript);
    }
    assert_string_equal(text_string(&transcript), expected);
    text_clear(&transcript);
}

static struct agent_event plain(enum agent_event_kind kind) {
    return (struct agent_event){.kind = kind};
}

static struct agent_event joined(int attempt, int node_count) {
    return (struct agent_event){
        .kind = AGENT_EVENT_JOINED, .joined = {.attempt = attempt, .node_count = node_count}};
}

static struct agent_event exited(int local_rank, int code) {
    return (struct agent_event){.kind = AGENT_EVENT_WORKER_EXITED,
        .worker_exited = {.local_rank = local_rank, .exit = {.value = code}}};
}

static struct agent_event killed(int local_rank, int signal) {
    return (struct agent_event){.kind = AGENT_EVENT_WORKER_EXITED,
        .worker_exited = {.local_rank = local_rank, .exit = {.is_signal = true, .value = signal}}};
}

static struct agent_event stuck(int local_rank) {
    return (struct agent_event){.kind = AGENT_EVENT_WORKER_STUCK,
        .worker_stuck = {.local_rank = local_rank, .stuck = duration_from_seconds(5)}};
}

static struct agent_event signalled(int signal) {
    return (struct agent_event){.kind = AGENT_EVENT_SIGNAL_RECEIVED, .signal = signal};
}

static struct agent_event peer_restart(int attempt) {
    return (struct agent_event){.kind = AGENT_EVENT_PEER_RESTART, .attempt = attempt};
}

static struct scene running_scene(int max_restarts, int node_count) {
    struct scene scene = scene_new(max_restarts);
    step(&scene, plain(AGENT_EVENT_START), "join attempt=0");
    step(&scene, joined(0, node_count), "start_workers attempt=0");
    step(&scene, plain(AGENT_EVENT_WORKERS_STARTED), "");
    return scene;
}

static void scene_end(struct scene *scene) {
    assert_int_equal(scene->machine.phase, AGENT_DONE);
    step(scene, signalled(15), "");
    step(scene, exited(0, 1), "");
    agent_machine_clear(&scene->machine);
}

static void a_job_that_succeeds_ends_what_it_left_behind(void **state) {
    (void)state;
    struct scene scene = running_scene(0, 1);
    step(&scene, exited(2, 0), "");
    step(&scene, exited(0, 0), "");
    step(&scene, exited(1, 0), "signal_workers 15; arm_timer at=30.000");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; finish succeeded");
    scene_end(&scene);
}

static void left_behind_processes_are_killed_in_the_end(void **state) {
    (void)state;
    struct scene scene = running_scene(0, 1);
    step(&scene, exited(2, 0), "");
    step(&scene, exited(0, 0), "");
    step(&scene, exited(1, 0), "signal_workers 15; arm_timer at=30.000");
    scene.seconds = 30;
    step(&scene, plain(AGENT_EVENT_TIMER_FIRED), "kill_workers; arm_timer at=60.000");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; finish succeeded");
    scene_end(&scene);
}

static void a_failure_without_restarts_stops_the_others_and_is_final(void **state) {
    (void)state;
    struct scene scene = running_scene(0, 1);
    scene.seconds = 5;
    step(&scene, exited(1, 3), "signal_workers 15; arm_timer at=35.000");
    step(&scene, killed(0, 15), "");
    step(&scene, exited(2, 0), "");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; finish failed");
    assert_int_equal(scene.machine.workers.failure_count, 2);
    assert_int_equal(worker_group_root_cause(&scene.machine.workers), 0);
    assert_false(scene.machine.workers.failures[0].is_from_our_signal);
    assert_true(scene.machine.workers.failures[1].is_from_our_signal);
    scene_end(&scene);
}

static void a_stuck_worker_ends_the_job_whatever_restarts_are_left(void **state) {
    (void)state;
    struct scene scene = running_scene(3, 2);
    step(&scene, stuck(1), "announce_failure; signal_workers 15; arm_timer at=30.000");
    step(&scene, stuck(2), "");
    step(&scene, killed(0, 15), "");
    step(&scene, killed(2, 15), "");
    scene.seconds = 30;
    step(&scene, plain(AGENT_EVENT_TIMER_FIRED), "kill_workers; arm_timer at=60.000");
    scene.seconds = 60;
    step(&scene, plain(AGENT_EVENT_TIMER_FIRED), "finish failed abandoned");
    assert_int_equal(worker_group_root_cause(&scene.machine.workers), 0);
    assert_int_equal(scene.machine.workers.failures[0].local_rank, 1);
    scene_end(&scene);
}

static void a_stuck_worker_that_ends_after_all_is_still_the_failure(void **state) {
    (void)state;
    struct scene scene = running_scene(3, 1);
    step(&scene, stuck(1), "signal_workers 15; arm_timer at=30.000");
    step(&scene, exited(1, 0), "");
    step(&scene, killed(0, 15), "");
    step(&scene, killed(2, 15), "");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; finish failed");
    assert_int_equal(scene.machine.workers.failure_count, 3);
    scene_end(&scene);
}

static void a_worker_may_be_stuck_before_all_have_started(void **state) {
    (void)state;
    struct scene scene = scene_new(1);
    step(&scene, plain(AGENT_EVENT_START), "join attempt=0");
    step(&scene, joined(0, 1), "start_workers attempt=0");
    step(&scene, stuck(0), "signal_workers 15; arm_timer at=30.000");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; finish failed");
    scene_end(&scene);
}

static void a_worker_that_ended_is_not_stuck(void **state) {
    (void)state;
    struct scene scene = running_scene(0, 1);
    step(&scene, exited(1, 0), "");
    step(&scene, stuck(1), "");
    assert_int_equal(scene.machine.phase, AGENT_RUNNING);
    agent_machine_clear(&scene.machine);
}

static void a_failure_with_restarts_left_joins_again_once_all_are_gone(void **state) {
    (void)state;
    struct scene scene = running_scene(1, 1);
    step(&scene, killed(1, 9), "signal_workers 15; arm_timer at=30.000");
    step(&scene, killed(0, 15), "");
    step(&scene, killed(2, 15), "");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; join attempt=1");
    step(&scene, joined(0, 1), "");
    step(&scene, joined(1, 1), "start_workers attempt=1");
    step(&scene, plain(AGENT_EVENT_WORKERS_STARTED), "");
    assert_int_equal(scene.machine.workers.failure_count, 0);
    step(&scene, exited(1, 1), "signal_workers 15; arm_timer at=30.000");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; finish failed");
    scene_end(&scene);
}

static void workers_that_ignore_the_signal_are_killed_after_the_shutdown_timeout(void **state) {
    (void)state;
    struct scene scene = running_scene(1, 1);
    step(&scene, exited(1, 3), "signal_workers 15; arm_timer at=30.000");
    scene.seconds = 29;
    step(&scene, plain(AGENT_EVENT_TIMER_FIRED), "");
    scene.seconds = 30;
    step(&scene, plain(AGENT_EVENT_TIMER_FIRED), "kill_workers; arm_timer at=60.000");
    step(&scene, killed(0, 9), "");
    assert_true(scene.machine.workers.failures[1].is_from_our_signal);
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; join attempt=1");
    agent_machine_clear(&scene.machine);
}

static void nothing_restarts_beside_a_process_that_cannot_be_killed(void **state) {
    (void)state;
    struct scene scene = running_scene(1, 1);
    step(&scene, exited(1, 3), "signal_workers 15; arm_timer at=30.000");
    scene.seconds = 30;
    step(&scene, plain(AGENT_EVENT_TIMER_FIRED), "kill_workers; arm_timer at=60.000");
    scene.seconds = 60;
    step(&scene, plain(AGENT_EVENT_TIMER_FIRED), "finish failed abandoned");
    scene_end(&scene);
}

static void a_signal_is_forwarded_and_outlives_a_success(void **state) {
    (void)state;
    struct scene scene = running_scene(5, 1);
    step(&scene, signalled(2), "signal_workers 2; arm_timer at=30.000");
    step(&scene, killed(0, 2), "");
    assert_true(scene.machine.workers.failures[0].is_from_our_signal);
    step(&scene, exited(1, 0), "");
    step(&scene, exited(2, 0), "");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; finish signalled=2");
    scene_end(&scene);
}

static void a_second_signal_kills_at_once(void **state) {
    (void)state;
    struct scene scene = running_scene(5, 1);
    step(&scene, signalled(15), "signal_workers 15; arm_timer at=30.000");
    scene.seconds = 1;
    step(&scene, signalled(2), "kill_workers; arm_timer at=31.000");
    step(&scene, signalled(2), "");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; finish signalled=15");
    scene_end(&scene);
}

static void a_signal_turns_a_restart_into_an_end_without_a_new_deadline(void **state) {
    (void)state;
    struct scene scene = running_scene(5, 2);
    step(
        &scene, exited(0, 1), "announce_restart attempt=1; signal_workers 15; arm_timer at=30.000");
    scene.seconds = 10;
    step(&scene, signalled(2), "announce_failure; signal_workers 2");
    scene.seconds = 30;
    step(&scene, plain(AGENT_EVENT_TIMER_FIRED), "kill_workers; arm_timer at=60.000");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; finish signalled=2");
    scene_end(&scene);
}

static void a_signal_does_not_hide_the_failure_that_came_before(void **state) {
    (void)state;
    struct scene scene = running_scene(0, 1);
    step(&scene, exited(0, 1), "signal_workers 15; arm_timer at=30.000");
    step(&scene, signalled(2), "signal_workers 2");
    step(&scene, signalled(2), "kill_workers; arm_timer at=30.000");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; finish failed");
    scene_end(&scene);
}

static void a_signal_while_joining_ends_at_once(void **state) {
    (void)state;
    struct scene scene = scene_new(0);
    step(&scene, plain(AGENT_EVENT_START), "join attempt=0");
    step(&scene, signalled(15), "finish signalled=15");
    scene_end(&scene);
    scene = scene_new(0);
    step(&scene, signalled(15), "finish signalled=15");
    scene_end(&scene);
}

static void a_signal_while_starting_stops_those_started(void **state) {
    (void)state;
    struct scene scene = scene_new(0);
    step(&scene, plain(AGENT_EVENT_START), "join attempt=0");
    step(&scene, joined(0, 1), "start_workers attempt=0");
    step(&scene, signalled(1), "signal_workers 1; arm_timer at=30.000");
    step(&scene, plain(AGENT_EVENT_WORKERS_STARTED), "");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; finish signalled=1");
    scene_end(&scene);
}

static void a_signal_in_the_exit_barrier_ends_at_once(void **state) {
    (void)state;
    struct scene scene = running_scene(0, 2);
    for (int rank = 0; rank < 2; rank++) {
        step(&scene, exited(rank, 0), "");
    }
    step(&scene, exited(2, 0), "signal_workers 15; arm_timer at=30.000");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; enter_barrier attempt=0");
    step(&scene, signalled(15), "announce_failure; finish signalled=15");
    scene_end(&scene);
}

static void a_worker_that_cannot_start_is_final_in_spite_of_restarts(void **state) {
    (void)state;
    struct scene scene = scene_new(5);
    step(&scene, plain(AGENT_EVENT_START), "join attempt=0");
    step(&scene, joined(0, 2), "start_workers attempt=0");
    step(&scene,
        (struct agent_event){.kind = AGENT_EVENT_START_FAILED,
            .start_failed = {.local_rank = 1, .message = "exec of 'x' failed"}},
        "announce_failure; signal_workers 15; arm_timer at=30.000");
    step(&scene, killed(0, 15), "");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; finish failed");
    assert_int_equal(worker_group_root_cause(&scene.machine.workers), 0);
    assert_string_equal(scene.machine.workers.failures[0].start_message, "exec of 'x' failed");
    scene_end(&scene);
}

static void a_worker_that_fails_before_all_have_started_stops_the_start(void **state) {
    (void)state;
    struct scene scene = scene_new(1);
    step(&scene, plain(AGENT_EVENT_START), "join attempt=0");
    step(&scene, joined(0, 1), "start_workers attempt=0");
    step(&scene, exited(0, 1), "signal_workers 15; arm_timer at=30.000");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; join attempt=1");
    agent_machine_clear(&scene.machine);
}

static void a_join_that_fails_ends_the_agent(void **state) {
    (void)state;
    struct scene scene = scene_new(1);
    step(&scene, plain(AGENT_EVENT_START), "join attempt=0");
    step(&scene, (struct agent_event){.kind = AGENT_EVENT_JOIN_FAILED, .attempt = 0},
        "finish join_failed");
    scene_end(&scene);
}

static void an_exit_code_of_128_plus_our_signal_is_our_doing(void **state) {
    (void)state;
    struct scene scene = running_scene(0, 1);
    step(&scene, exited(0, 143), "signal_workers 15; arm_timer at=30.000");
    step(&scene, exited(1, 143), "");
    step(&scene, exited(2, 142), "");
    assert_false(scene.machine.workers.failures[0].is_from_our_signal);
    assert_true(scene.machine.workers.failures[1].is_from_our_signal);
    assert_false(scene.machine.workers.failures[2].is_from_our_signal);
    agent_machine_clear(&scene.machine);
}

static void several_nodes_leave_through_the_exit_barrier(void **state) {
    (void)state;
    static const enum agent_event_kind answers[] = {
        AGENT_EVENT_BARRIER_PASSED, AGENT_EVENT_BARRIER_FAILED, AGENT_EVENT_PEER_FAILED};
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        struct scene scene = running_scene(0, 2);
        step(&scene, exited(0, 0), "");
        step(&scene, exited(1, 0), "");
        step(&scene, exited(2, 0), "signal_workers 15; arm_timer at=30.000");
        step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; enter_barrier attempt=0");
        step(&scene, plain(answers[i]), "finish succeeded");
        scene_end(&scene);
    }
}

static void a_restart_elsewhere_is_a_restart_here(void **state) {
    (void)state;
    struct scene scene = running_scene(2, 2);
    step(&scene, peer_restart(1), "signal_workers 15; arm_timer at=30.000");
    step(&scene, killed(0, 15), "");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; join attempt=1");
    step(&scene, joined(1, 2), "start_workers attempt=1");
    step(&scene, plain(AGENT_EVENT_WORKERS_STARTED), "");
    step(&scene, peer_restart(1), "");
    assert_int_equal(restart_policy_remaining(&scene.machine.restarts), 1);
    agent_machine_clear(&scene.machine);
}

static void failures_on_two_nodes_cost_one_restart(void **state) {
    (void)state;
    struct scene scene = running_scene(2, 2);
    step(
        &scene, exited(0, 1), "announce_restart attempt=1; signal_workers 15; arm_timer at=30.000");
    step(&scene, peer_restart(1), "");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; join attempt=1");
    assert_int_equal(restart_policy_remaining(&scene.machine.restarts), 1);
    agent_machine_clear(&scene.machine);
}

static void a_node_that_has_finished_rejoins_when_the_job_restarts(void **state) {
    (void)state;
    struct scene scene = running_scene(2, 2);
    step(&scene, exited(0, 0), "");
    step(&scene, exited(1, 0), "");
    step(&scene, exited(2, 0), "signal_workers 15; arm_timer at=30.000");
    step(&scene, peer_restart(1), "");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; join attempt=1");
    step(&scene, joined(1, 2), "start_workers attempt=1");
    for (int rank = 0; rank < 2; rank++) {
        step(&scene, exited(rank, 0), "");
    }
    step(&scene, exited(2, 0), "signal_workers 15; arm_timer at=30.000");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; enter_barrier attempt=1");
    step(&scene, peer_restart(2), "join attempt=2");
    agent_machine_clear(&scene.machine);
}

static void a_restart_this_node_does_not_allow_is_a_failure(void **state) {
    (void)state;
    struct scene scene = running_scene(0, 2);
    step(&scene, peer_restart(1), "announce_failure; signal_workers 15; arm_timer at=30.000");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; finish peer_failed");
    scene_end(&scene);
}

static void a_failure_elsewhere_ends_this_node(void **state) {
    (void)state;
    struct scene scene = running_scene(2, 2);
    step(&scene, plain(AGENT_EVENT_PEER_FAILED), "signal_workers 15; arm_timer at=30.000");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; finish peer_failed");
    scene_end(&scene);

    scene = running_scene(2, 2);
    step(
        &scene, exited(0, 1), "announce_restart attempt=1; signal_workers 15; arm_timer at=30.000");
    step(&scene, plain(AGENT_EVENT_PEER_FAILED), "");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; finish peer_failed");
    scene_end(&scene);

    scene = running_scene(2, 2);
    step(
        &scene, exited(0, 1), "announce_restart attempt=1; signal_workers 15; arm_timer at=30.000");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; join attempt=1");
    step(&scene, plain(AGENT_EVENT_PEER_FAILED), "finish peer_failed");
    scene_end(&scene);
}

static void a_last_failure_is_announced_at_once(void **state) {
    (void)state;
    struct scene scene = running_scene(0, 2);
    step(&scene, exited(0, 1), "announce_failure; signal_workers 15; arm_timer at=30.000");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; finish failed");
    scene_end(&scene);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_job_that_succeeds_ends_what_it_left_behind),
    cmocka_unit_test(left_behind_processes_are_killed_in_the_end),
    cmocka_unit_test(a_failure_without_restarts_stops_the_others_and_is_final),
    cmocka_unit_test(a_stuck_worker_ends_the_job_whatever_restarts_are_left),
    cmocka_unit_test(a_stuck_worker_that_ends_after_all_is_still_the_failure),
    cmocka_unit_test(a_worker_may_be_stuck_before_all_have_started),
    cmocka_unit_test(a_worker_that_ended_is_not_stuck),
    cmocka_unit_test(a_failure_with_restarts_left_joins_again_once_all_are_gone),
    cmocka_unit_test(workers_that_ignore_the_signal_are_killed_after_the_shutdown_timeout),
    cmocka_unit_test(nothing_restarts_beside_a_process_that_cannot_be_killed),
    cmocka_unit_test(a_signal_is_forwarded_and_outlives_a_success),
    cmocka_unit_test(a_second_signal_kills_at_once),
    cmocka_unit_test(a_signal_turns_a_restart_into_an_end_without_a_new_deadline),
    cmocka_unit_test(a_signal_does_not_hide_the_failure_that_came_before),
    cmocka_unit_test(a_signal_while_joining_ends_at_once),
    cmocka_unit_test(a_signal_while_starting_stops_those_started),
    cmocka_unit_test(a_signal_in_the_exit_barrier_ends_at_once),
    cmocka_unit_test(a_worker_that_cannot_start_is_final_in_spite_of_restarts),
    cmocka_unit_test(a_worker_that_fails_before_all_have_started_stops_the_start),
    cmocka_unit_test(a_join_that_fails_ends_the_agent),
    cmocka_unit_test(an_exit_code_of_128_plus_our_signal_is_our_doing),
    cmocka_unit_test(several_nodes_leave_through_the_exit_barrier),
    cmocka_unit_test(a_restart_elsewhere_is_a_restart_here),
    cmocka_unit_test(failures_on_two_nodes_cost_one_restart),
    cmocka_unit_test(a_node_that_has_finished_rejoins_when_the_job_restarts),
    cmocka_unit_test(a_restart_this_node_does_not_allow_is_a_failure),
    cmocka_unit_test(a_failure_elsewhere_ends_this_node),
    cmocka_unit_test(a_last_failure_is_announced_at_once),
};

TEST_MAIN(tests)
