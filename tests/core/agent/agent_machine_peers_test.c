/* SPDX-License-Identifier: BSD-3-Clause */
/* What an agent does beside other nodes. One test per rule. */
#include "unit.h"

#include "agent_machine_scene.h"

TEST(a_signal_ends_this_node_but_not_the_job) {
    struct scene scene = running_scene(5, AMONG_PEERS);
    step(&scene, signalled(15), "announce_leave signal=15; signal_workers 15; arm_timer at=30.000");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; finish signalled=15");
    scene_end(&scene);
}

TEST(a_signal_in_the_exit_barrier_ends_at_once) {
    struct scene scene = running_scene(0, AMONG_PEERS);
    for (int rank = 0; rank < 2; rank++) {
        step(&scene, exited(rank, 0), "");
    }
    step(&scene, exited(2, 0), "signal_workers 15; arm_timer at=30.000");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; enter_barrier attempt=0");
    step(&scene, signalled(15), "announce_leave signal=15; finish signalled=15");
    scene_end(&scene);
}

TEST(a_node_that_cannot_end_its_processes_leaves_the_job) {
    struct scene scene = running_scene(1, AMONG_PEERS);
    step(&scene, plain(AGENT_EVENT_ROUND_OVER), "signal_workers 15; arm_timer at=30.000");
    scene.seconds = 30;
    step(&scene, plain(AGENT_EVENT_TIMER_FIRED), "kill_workers; arm_timer at=60.000");
    scene.seconds = 60;
    step(&scene, plain(AGENT_EVENT_TIMER_FIRED), "announce_leave; finish failed abandoned");
    assert_false(worker_group_has_failure(&scene.machine.workers));
    scene_end(&scene);
}

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

TEST(restarts_are_counted_by_the_job) {
    struct scene scene = running_scene(2, AMONG_PEERS);
    step(
        &scene, exited(0, 1), "announce_restart attempt=1; signal_workers 15; arm_timer at=30.000");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; join ticket=2 attempt=1");
    /* The failure was taken for a consequence. */
    step(&scene, joined(2, 0), "start_workers attempt=0");
    step(&scene, plain(AGENT_EVENT_ROUND_OVER), "signal_workers 15; arm_timer at=30.000");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; join ticket=3 attempt=0");
    step(&scene, joined(3, 7), "start_workers attempt=7"); /* other nodes allow more restarts */
    step(&scene, exited(0, 1), "announce_failure; signal_workers 15; arm_timer at=30.000");
    agent_machine_clear(&scene.machine);
}

TEST(a_job_that_ends_without_a_spare_node_ends_it_well) {
    struct scene scene = scene_new(0, AMONG_PEERS);
    step(&scene, plain(AGENT_EVENT_START), "join ticket=1 attempt=0");
    step(&scene, plain(AGENT_EVENT_JOB_OVER), "finish succeeded");
    scene_end(&scene);
}

TEST(a_new_round_restarts_the_workers_for_free) {
    struct scene scene = running_scene(0, AMONG_PEERS);
    step(&scene, plain(AGENT_EVENT_ROUND_OVER), "signal_workers 15; arm_timer at=30.000");
    step(&scene, exited(0, 1), "");
    step(&scene, plain(AGENT_EVENT_ROUND_OVER), "");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; join ticket=2 attempt=0");
    step(&scene, plain(AGENT_EVENT_ROUND_OVER), "");
    step(&scene, joined(2, 0), "start_workers attempt=0");
    assert_false(worker_group_has_failure(&scene.machine.workers));
    step(&scene, plain(AGENT_EVENT_ROUND_OVER), "signal_workers 15; arm_timer at=30.000");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; join ticket=3 attempt=0");
    agent_machine_clear(&scene.machine);
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

TEST(a_new_round_does_not_undo_an_end) {
    struct scene scene = running_scene(0, AMONG_PEERS);
    step(&scene, exited(0, 1), "announce_failure; signal_workers 15; arm_timer at=30.000");
    step(&scene, plain(AGENT_EVENT_ROUND_OVER), "");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; finish failed");
    scene_end(&scene);

    scene = running_scene(0, AMONG_PEERS);
    step(&scene, plain(AGENT_EVENT_PEER_FAILED), "signal_workers 15; arm_timer at=30.000");
    step(&scene, plain(AGENT_EVENT_ROUND_OVER), "");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; finish peer_failed");
    scene_end(&scene);

    scene = running_scene(0, AMONG_PEERS);
    step(&scene, signalled(2), "announce_leave signal=2; signal_workers 2; arm_timer at=30.000");
    step(&scene, plain(AGENT_EVENT_ROUND_OVER), "");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; finish signalled=2");
    scene_end(&scene);
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

TEST(several_nodes_leave_through_the_exit_barrier) {
    static const struct {
        enum agent_event_kind answer;
        const char *effects;
    } ends[] = {
        {AGENT_EVENT_BARRIER_PASSED, "announce_success; finish succeeded"},
        {AGENT_EVENT_BARRIER_FAILED, "announce_leave; finish succeeded"},
        {AGENT_EVENT_PEER_FAILED, "finish succeeded"},
    };
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct scene scene = finished_scene();
        step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; enter_barrier attempt=0");
        step(&scene, plain(ends[i].answer), ends[i].effects);
        scene_end(&scene);
    }
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

/* Its settings differ, or it restarts more often than anybody may. */
TEST(a_restart_elsewhere_beyond_those_allowed_is_a_failure_of_the_job) {
    struct scene scene = running_scene(1, AMONG_PEERS);
    step(&scene, peer_restart(2), "announce_failure; signal_workers 15; arm_timer at=30.000");
    assert_int_equal(restart_policy_remaining(&scene.machine.restarts), 1);
    agent_machine_clear(&scene.machine);
    scene = finished_scene();
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; enter_barrier attempt=0");
    step(&scene, peer_restart(1), "announce_failure; finish peer_failed");
    scene_end(&scene);
}

TEST(the_jobs_count_of_restarts_is_taken_whatever_it_is) {
    struct scene scene = scene_new(2, AMONG_PEERS);
    step(&scene, plain(AGENT_EVENT_START), "join ticket=1 attempt=0");
    step(&scene, joined(1, 5), "start_workers attempt=5");
    step(&scene, plain(AGENT_EVENT_WORKERS_STARTED), "");
    assert_int_equal(restart_policy_remaining(&scene.machine.restarts), 0);
    step(&scene, exited(0, 1), "announce_failure; signal_workers 15; arm_timer at=30.000");
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

TEST(a_last_failure_is_doubted_where_nodes_come_and_go) {
    struct scene scene = doubting_scene();
    step(&scene, plain(AGENT_EVENT_FAILURE_STANDS), "");
    step(&scene, plain(AGENT_EVENT_ROUND_OVER), "");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; finish failed");
    scene_end(&scene);

    scene = doubting_scene();
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer");
    assert_int_equal(scene.machine.phase, AGENT_DOUBTING);
    step(&scene, plain(AGENT_EVENT_FAILURE_STANDS), "finish failed");
    scene_end(&scene);
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

TEST(workers_get_the_signal_of_the_node_that_was_told_to_end) {
    struct scene scene = running_scene(5, AMONG_PEERS);
    step(
        &scene, told(AGENT_EVENT_ROUND_OVER, 10), "signal_workers 10 relayed; arm_timer at=30.000");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; join ticket=2 attempt=0");
    step(&scene, signalled(10), "announce_leave signal=10; finish signalled=10");
    scene_end(&scene);

    scene = running_scene(5, AMONG_PEERS);
    step(&scene, told(AGENT_EVENT_PEER_FAILED, 10),
        "signal_workers 10 relayed; arm_timer at=30.000");
    step(&scene, plain(AGENT_EVENT_ALL_GONE), "disarm_timer; finish peer_failed");
    scene_end(&scene);
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
