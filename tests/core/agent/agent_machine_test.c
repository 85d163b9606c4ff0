/* SPDX-License-Identifier: BSD-3-Clause */
/* What an agent does without other nodes. One test per rule. */
#include "unit.h"

#include "agent_machine_scene.h"

TEST(a_stuck_worker_ends_the_job_whatever_restarts_are_left) {
    struct scene scene = running_scene(3, AMONG_PEERS);
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

TEST(a_worker_that_ended_is_not_stuck) {
    struct scene scene = running_scene(0, ALONE);
    step(&scene, exited(1, 0), "");
    step(&scene, stuck(1), "");
    assert_int_equal(scene.machine.phase, AGENT_RUNNING);
    agent_machine_clear(&scene.machine);
}

TEST(early_news_of_a_success_or_while_stopping_changes_nothing) {
    struct scene scene = running_scene(3, ALONE);
    step(&scene, ending(1, 0), "");
    assert_int_equal(scene.machine.phase, AGENT_RUNNING);
    step(&scene, exited(0, 1), "signal_workers 15; arm_timer at=30.000");
    step(&scene, ending(1, 5), "");
    assert_int_equal(scene.machine.workers.failure_count, 1);
    step(&scene, exited(1, 5), "");
    assert_int_equal(scene.machine.workers.failure_count, 2);
    agent_machine_clear(&scene.machine);
}

TEST(workers_that_ignore_the_signal_are_killed_after_the_shutdown_timeout) {
    struct scene scene = running_scene(1, ALONE);
    step(&scene, exited(1, 3), "signal_workers 15; arm_timer at=30.000");
    scene.seconds = 29;
    step(&scene, plain(AGENT_EVENT_TIMER_FIRED), "");
    scene.seconds = 30;
    step(&scene, plain(AGENT_EVENT_TIMER_FIRED), "kill_workers; arm_timer at=60.000");
    step(&scene, killed(0, 9), "");
    assert_true(scene.machine.workers.failures[1].is_from_our_signal);
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; join ticket=2 attempt=1");
    agent_machine_clear(&scene.machine);
}

TEST(nothing_restarts_beside_a_process_that_cannot_be_killed) {
    struct scene scene = running_scene(1, ALONE);
    step(&scene, exited(1, 3), "signal_workers 15; arm_timer at=30.000");
    scene.seconds = 30;
    step(&scene, plain(AGENT_EVENT_TIMER_FIRED), "kill_workers; arm_timer at=60.000");
    scene.seconds = 60;
    step(&scene, plain(AGENT_EVENT_TIMER_FIRED), "finish failed abandoned");
    scene_end(&scene);
}

TEST(a_signal_is_forwarded_and_outlives_a_success) {
    struct scene scene = running_scene(5, ALONE);
    step(&scene, signalled(2), "signal_workers 2; arm_timer at=30.000");
    step(&scene, killed(0, 2), "");
    assert_true(scene.machine.workers.failures[0].is_from_our_signal);
    step(&scene, exited(1, 0), "");
    step(&scene, exited(2, 0), "");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; finish signalled=2");
    scene_end(&scene);
}

TEST(who_does_not_end_is_looked_at_before_the_kill) {
    struct scene scene = running_scene(0, ALONE);
    scene.machine.looks_before_killing = true;
    step(&scene, exited(1, 1), "signal_workers 15; arm_timer at=30.000");
    scene.seconds = 30;
    step(&scene, plain(AGENT_EVENT_TIMER_FIRED), "look_at_workers");
    step(&scene, plain(AGENT_EVENT_TIMER_FIRED), "");
    step(&scene, signalled(15), ""); /* the kill follows the look */
    scene.seconds = 32;
    step(&scene, plain(AGENT_EVENT_LOOK_OVER), "kill_workers; arm_timer at=62.000");
    step(&scene, killed(0, 9), "");
    step(&scene, killed(2, 9), "");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; finish failed");
    scene_end(&scene);
}

TEST(an_impatient_user_ends_the_look) {
    struct scene scene = running_scene(0, ALONE);
    scene.machine.looks_before_killing = true;
    step(&scene, signalled(2), "signal_workers 2; arm_timer at=30.000");
    scene.seconds = 30;
    step(&scene, plain(AGENT_EVENT_TIMER_FIRED), "look_at_workers");
    step(&scene, signalled(2), "kill_workers; arm_timer at=60.000");
    step(&scene, plain(AGENT_EVENT_LOOK_OVER), "");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; finish signalled=2");
    scene_end(&scene);
}

TEST(the_group_is_stopped_when_nobody_is_looked_at_any_more) {
    struct scene scene = running_scene(1, ALONE);
    step(&scene, plain(AGENT_EVENT_LOOK_BEGUN), "");
    step(&scene, exited(1, 1), "");
    step(&scene, plain(AGENT_EVENT_LOOK_BEGUN), "");
    scene.seconds = 1;
    step(&scene, plain(AGENT_EVENT_LOOK_OVER), "");
    step(&scene, killed(0, 9), "");
    step(&scene, plain(AGENT_EVENT_LOOK_OVER), "signal_workers 15; arm_timer at=31.000");
    step(&scene, plain(AGENT_EVENT_LOOK_OVER), "");
    step(&scene, killed(2, 15), "");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; join ticket=2 attempt=1");
    step(&scene, plain(AGENT_EVENT_LOOK_BEGUN), "");
    step(&scene, joined(2, 1), "start_workers attempt=1");
    step(&scene, exited(1, 1), "signal_workers 15; arm_timer at=31.000");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; finish failed");
    scene_end(&scene);
}

TEST(a_second_signal_kills_at_once) {
    struct scene scene = running_scene(5, ALONE);
    step(&scene, signalled(15), "signal_workers 15; arm_timer at=30.000");
    scene.seconds = 1;
    step(&scene, signalled(2), "kill_workers; arm_timer at=31.000");
    step(&scene, signalled(2), "");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; finish signalled=15");
    scene_end(&scene);
}

TEST(a_signal_while_joining_ends_at_once) {
    struct scene scene = scene_new(0, ALONE);
    step(&scene, plain(AGENT_EVENT_START), "join ticket=1 attempt=0");
    step(&scene, signalled(15), "finish signalled=15");
    scene_end(&scene);
    scene = scene_new(0, AMONG_PEERS);
    step(&scene, signalled(15), "finish signalled=15"); /* no other node knows of this node yet */
    scene_end(&scene);
    scene = scene_new(0, AMONG_PEERS);
    step(&scene, plain(AGENT_EVENT_START), "join ticket=1 attempt=0");
    step(&scene, signalled(15), "announce_leave signal=15; finish signalled=15");
    scene_end(&scene);
}

TEST(a_worker_that_cannot_start_is_final_in_spite_of_restarts) {
    struct scene scene = scene_new(5, AMONG_PEERS);
    step(&scene, plain(AGENT_EVENT_START), "join ticket=1 attempt=0");
    step(&scene, joined(1, 0), "start_workers attempt=0");
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

TEST(an_exit_code_of_128_plus_our_signal_is_our_doing) {
    struct scene scene = running_scene(0, ALONE);
    step(&scene, exited(0, 143), "signal_workers 15; arm_timer at=30.000");
    step(&scene, exited(1, 143), "");
    step(&scene, exited(2, 142), "");
    assert_false(scene.machine.workers.failures[0].is_from_our_signal);
    assert_true(scene.machine.workers.failures[1].is_from_our_signal);
    assert_false(scene.machine.workers.failures[2].is_from_our_signal);
    agent_machine_clear(&scene.machine);
}

TEST(an_agent_that_cannot_go_on_stops_its_workers_without_a_restart_or_a_look) {
    struct scene scene = running_scene(3, AMONG_PEERS);
    scene.machine.looks_before_killing = true;
    step(&scene, plain(AGENT_EVENT_CANNOT_GO_ON),
        "announce_leave; signal_workers 15; arm_timer at=30.000");
    step(&scene, plain(AGENT_EVENT_CANNOT_GO_ON), "");
    scene.seconds = 30;
    step(&scene, plain(AGENT_EVENT_TIMER_FIRED), "kill_workers; arm_timer at=60.000");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; finish failed");
    step(&scene, plain(AGENT_EVENT_CANNOT_GO_ON), "");
    scene_end(&scene);
}

TEST(an_agent_that_cannot_go_on_does_not_restart) {
    struct scene scene = running_scene(3, AMONG_PEERS);
    step(
        &scene, exited(1, 3), "announce_restart attempt=1; signal_workers 15; arm_timer at=30.000");
    step(&scene, plain(AGENT_EVENT_CANNOT_GO_ON), "announce_leave");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; finish failed");
    scene_end(&scene);
}

TEST(an_agent_that_cannot_go_on_while_joining_ends_at_once) {
    struct scene scene = scene_new(0, AMONG_PEERS);
    step(&scene, plain(AGENT_EVENT_START), "join ticket=1 attempt=0");
    step(&scene, plain(AGENT_EVENT_CANNOT_GO_ON), "announce_leave; finish failed");
    scene_end(&scene);
}

/* What an agent does beside other nodes. One test per rule. */

TEST(a_join_that_fails_does_not_end_the_job) {
    struct scene scene = scene_new(1, AMONG_PEERS);
    step(&scene, plain(AGENT_EVENT_START), "join ticket=1 attempt=0");
    step(&scene, join_failed(1), "announce_leave; finish join_failed");
    scene_end(&scene);
}

TEST(answers_to_earlier_joins_are_stale) {
    struct scene scene = running_scene(1, AMONG_PEERS);
    step(&scene, plain(AGENT_EVENT_ROUND_OVER), "signal_workers 15; arm_timer at=30.000");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; join ticket=2 attempt=0");
    step(&scene, joined(1, 0), "");
    step(&scene, join_failed(1), "");
    step(&scene, joined(2, 0), "start_workers attempt=0");
    step(&scene, joined(2, 0), "");
    agent_machine_clear(&scene.machine);
}

TEST(a_job_that_ends_without_a_spare_node_ends_it_well) {
    struct scene scene = scene_new(0, AMONG_PEERS);
    step(&scene, plain(AGENT_EVENT_START), "join ticket=1 attempt=0");
    step(&scene, plain(AGENT_EVENT_JOB_OVER), "finish succeeded");
    scene_end(&scene);
}

TEST(a_node_that_has_finished_rejoins_for_a_new_round) {
    struct scene scene = finished_scene();
    step(&scene, plain(AGENT_EVENT_ROUND_OVER), "");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; join ticket=2 attempt=0");
    agent_machine_clear(&scene.machine);

    scene = finished_scene();
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; enter_barrier attempt=0");
    step(&scene, plain(AGENT_EVENT_ROUND_OVER), "join ticket=2 attempt=0");
    agent_machine_clear(&scene.machine);
}

/* Events that may come late, or that have no meaning in the phase. */
TEST(events_of_the_job_are_ignored_where_they_mean_nothing) {
    static const enum agent_phase phases_without[][2] = {
        /* ROUND_OVER, JOB_OVER */
        {AGENT_IDLE, AGENT_IDLE},
        {AGENT_JOINING, AGENT_STARTING},
        {AGENT_DONE, AGENT_RUNNING},
        {AGENT_DONE, AGENT_STOPPING},
        {AGENT_DONE, AGENT_LEAVING},
        {AGENT_DONE, AGENT_DONE},
    };
    struct scene scene = scene_new(0, AMONG_PEERS);
    for (size_t i = 0; i < sizeof phases_without / sizeof *phases_without; i++) {
        scene.machine.phase = phases_without[i][0];
        step(&scene, plain(AGENT_EVENT_ROUND_OVER), "");
        scene.machine.phase = phases_without[i][1];
        step(&scene, plain(AGENT_EVENT_JOB_OVER), "");
        assert_int_equal(scene.machine.phase, phases_without[i][1]);
    }
    agent_machine_clear(&scene.machine);
}

TEST(a_restart_elsewhere_is_a_restart_here) {
    struct scene scene = running_scene(2, AMONG_PEERS);
    step(&scene, peer_restart(1), "signal_workers 15; arm_timer at=30.000");
    step(&scene, killed(0, 15), "");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; join ticket=2 attempt=1");
    step(&scene, joined(2, 1), "start_workers attempt=1");
    step(&scene, plain(AGENT_EVENT_WORKERS_STARTED), "");
    step(&scene, peer_restart(1), "");
    assert_int_equal(restart_policy_remaining(&scene.machine.restarts), 1);
    agent_machine_clear(&scene.machine);
}

TEST(failures_on_two_nodes_cost_one_restart) {
    struct scene scene = running_scene(2, AMONG_PEERS);
    step(
        &scene, exited(0, 1), "announce_restart attempt=1; signal_workers 15; arm_timer at=30.000");
    step(&scene, peer_restart(1), "");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; join ticket=2 attempt=1");
    assert_int_equal(restart_policy_remaining(&scene.machine.restarts), 1);
    agent_machine_clear(&scene.machine);
}

TEST(a_node_that_has_finished_rejoins_when_the_job_restarts) {
    struct scene scene = running_scene(2, AMONG_PEERS);
    step(&scene, exited(0, 0), "");
    step(&scene, exited(1, 0), "");
    step(&scene, exited(2, 0), "signal_workers 15; arm_timer at=30.000");
    step(&scene, peer_restart(1), "");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; join ticket=2 attempt=1");
    step(&scene, joined(2, 1), "start_workers attempt=1");
    for (int rank = 0; rank < 2; rank++) {
        step(&scene, exited(rank, 0), "");
    }
    step(&scene, exited(2, 0), "signal_workers 15; arm_timer at=30.000");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; enter_barrier attempt=1");
    step(&scene, peer_restart(2), "join ticket=3 attempt=2");
    agent_machine_clear(&scene.machine);
}

TEST(a_restart_this_node_does_not_allow_is_a_failure) {
    struct scene scene = running_scene(0, AMONG_PEERS);
    step(&scene, peer_restart(1), "announce_failure; signal_workers 15; arm_timer at=30.000");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; finish peer_failed");
    scene_end(&scene);
}

TEST(a_failure_elsewhere_ends_this_node) {
    struct scene scene = running_scene(2, AMONG_PEERS);
    step(&scene, plain(AGENT_EVENT_PEER_FAILED), "signal_workers 15; arm_timer at=30.000");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; finish peer_failed");
    scene_end(&scene);

    scene = running_scene(2, AMONG_PEERS);
    step(
        &scene, exited(0, 1), "announce_restart attempt=1; signal_workers 15; arm_timer at=30.000");
    step(&scene, plain(AGENT_EVENT_PEER_FAILED), "");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; finish peer_failed");
    scene_end(&scene);

    scene = running_scene(2, AMONG_PEERS);
    step(
        &scene, exited(0, 1), "announce_restart attempt=1; signal_workers 15; arm_timer at=30.000");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; join ticket=2 attempt=1");
    step(&scene, plain(AGENT_EVENT_PEER_FAILED), "finish peer_failed");
    scene_end(&scene);
}

TEST(a_last_failure_is_announced_at_once) {
    struct scene scene = running_scene(0, AMONG_PEERS);
    step(&scene, exited(0, 1), "announce_failure; signal_workers 15; arm_timer at=30.000");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; finish failed");
    scene_end(&scene);
}

/* Where nodes come and go, a failure without a restart left may be the consequence of a lost node.
 */

static struct scene doubting_scene(void) {
    struct scene scene = running_scene(0, AMONG_CHANGING_PEERS);
    step(&scene, exited(0, 1), "doubt_failure; signal_workers 15; arm_timer at=30.000");
    return scene;
}

TEST(a_failure_that_a_lost_node_left_behind_costs_nothing) {
    struct scene scene = doubting_scene();
    step(&scene, plain(AGENT_EVENT_ROUND_OVER), "");
    step(&scene, plain(AGENT_EVENT_FAILURE_STANDS), ""); /* this answer comes too late */
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; join ticket=2 attempt=0");
    agent_machine_clear(&scene.machine);

    scene = doubting_scene();
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer");
    step(&scene, plain(AGENT_EVENT_ROUND_OVER), "join ticket=2 attempt=0");
    agent_machine_clear(&scene.machine);
}

TEST(a_failure_that_is_doubted_stands_when_the_job_fails_elsewhere) {
    struct scene scene = doubting_scene();
    step(&scene, plain(AGENT_EVENT_PEER_FAILED), "");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; finish failed");
    scene_end(&scene);

    scene = doubting_scene();
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer");
    step(&scene, plain(AGENT_EVENT_PEER_FAILED), "finish failed");
    scene_end(&scene);
}

TEST(a_signal_ends_the_doubt_for_this_node_but_not_the_job) {
    struct scene scene = doubting_scene();
    step(&scene, signalled(15), "announce_leave signal=15");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; finish failed");
    scene_end(&scene);

    scene = doubting_scene();
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer");
    step(&scene, signalled(15), "announce_leave signal=15; finish failed");
    scene_end(&scene);
}

static struct agent_event told(enum agent_event_kind kind, int signal) {
    return (struct agent_event){.kind = kind, .signal = signal};
}

TEST(a_signal_that_workers_got_already_they_do_not_get_again) {
    struct scene scene = running_scene(5, AMONG_PEERS);
    step(&scene, told(AGENT_EVENT_PEER_FAILED, 10),
        "signal_workers 10 relayed; arm_timer at=30.000");
    step(&scene, signalled(10), "");
    step(&scene, signalled(10), "kill_workers; arm_timer at=30.000");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; finish peer_failed");
    scene_end(&scene);

    scene = running_scene(5, AMONG_PEERS);
    step(
        &scene, told(AGENT_EVENT_ROUND_OVER, 10), "signal_workers 10 relayed; arm_timer at=30.000");
    step(&scene, signalled(15), "announce_leave signal=15; signal_workers 15");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; finish signalled=15");
    scene_end(&scene);
}

TEST(what_cannot_be_ended_ends_the_doubt) {
    struct scene scene = doubting_scene();
    scene.seconds = 30;
    step(&scene, plain(AGENT_EVENT_TIMER_FIRED), "kill_workers; arm_timer at=60.000");
    scene.seconds = 60;
    step(&scene, plain(AGENT_EVENT_TIMER_FIRED), "announce_leave; finish failed abandoned");
    scene_end(&scene);
}
