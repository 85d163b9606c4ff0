/* SPDX-License-Identifier: BSD-3-Clause */
/* What the agent of node 0 lived through in some seeded jobs, line by line: each event and what the
 * machine wanted done. A running agent logs the same lines. */
#include "unit.h"

#include "virtual_cluster.h"

static void check(struct virtual_settings settings, const char *expected) {
    struct virtual_cluster cluster;
    virtual_cluster_play(&cluster, &settings);
    assert_string_equal(text_string(&cluster.transcript), expected);
    virtual_cluster_clear(&cluster);
}

static void two_nodes_finish_together(void **state) {
    (void)state;
    check((struct virtual_settings){.seed = 1, .node_count = 2, .worker_count = 2},
        "start -> join ticket=1 attempt=0\n"
        "joined ticket=1 restarts=0 nodes=2 -> start_workers attempt=0\n"
        "workers_started\n"
        "worker_exited rank=0 code=0\n"
        "worker_exited rank=1 code=0 -> signal_workers 15; arm_timer at=32.961\n"
        "all_gone -> disarm_timer; enter_barrier attempt=0\n"
        "barrier_passed -> announce_success; finish succeeded\n");
}

static void a_node_whose_worker_fails_takes_the_job_to_the_next_attempt(void **state) {
    (void)state;
    check((struct virtual_settings){.seed = 3,
              .node_count = 2,
              .worker_count = 2,
              .max_restarts = 1,
              .weather = {.worker_fails = 30}},
        "start -> join ticket=1 attempt=0\n"
        "joined ticket=1 restarts=0 nodes=2 -> start_workers attempt=0\n"
        "workers_started\n"
        "worker_exited rank=0 code=1 -> announce_restart attempt=1; signal_workers 15; arm_timer "
        "at=34.429\n"
        "worker_exited rank=1 signal=15\n"
        "all_gone -> disarm_timer; join ticket=2 attempt=1\n"
        "joined ticket=2 restarts=1 nodes=2 -> start_workers attempt=1\n"
        "workers_started\n"
        "worker_exited rank=1 code=0\n"
        "worker_exited rank=0 code=0 -> signal_workers 15; arm_timer at=37.488\n"
        "all_gone -> disarm_timer; enter_barrier attempt=1\n"
        "barrier_passed -> announce_success; finish succeeded\n");
}

static void a_node_follows_a_restart_asked_for_elsewhere(void **state) {
    (void)state;
    check((struct virtual_settings){.seed = 1,
              .node_count = 2,
              .worker_count = 2,
              .max_restarts = 1,
              .weather = {.worker_fails = 30}},
        "start -> join ticket=1 attempt=0\n"
        "joined ticket=1 restarts=0 nodes=2 -> start_workers attempt=0\n"
        "workers_started\n"
        "worker_exited rank=0 code=0\n"
        "peer_restart attempt=1 -> signal_workers 15; arm_timer at=32.786\n"
        "worker_exited rank=1 signal=15\n"
        "all_gone -> disarm_timer; join ticket=2 attempt=1\n"
        "joined ticket=2 restarts=1 nodes=2 -> start_workers attempt=1\n"
        "workers_started\n"
        "worker_exited rank=1 code=0\n"
        "worker_exited rank=0 code=0 -> signal_workers 15; arm_timer at=37.805\n"
        "all_gone -> disarm_timer; enter_barrier attempt=1\n"
        "barrier_passed -> announce_success; finish succeeded\n");
}

static void a_node_without_restarts_left_says_so_before_it_stops(void **state) {
    (void)state;
    check((struct virtual_settings){.seed = 4,
              .node_count = 2,
              .worker_count = 2,
              .max_restarts = 1,
              .weather = {.worker_fails = 30}},
        "start -> join ticket=1 attempt=0\n"
        "joined ticket=1 restarts=0 nodes=2 -> start_workers attempt=0\n"
        "workers_started\n"
        "worker_exited rank=1 code=1 -> announce_restart attempt=1; signal_workers 15; arm_timer "
        "at=30.343\n"
        "worker_exited rank=0 signal=15\n"
        "all_gone -> disarm_timer; join ticket=2 attempt=1\n"
        "joined ticket=2 restarts=1 nodes=2 -> start_workers attempt=1\n"
        "workers_started\n"
        "worker_exited rank=0 code=1 -> announce_failure; signal_workers 15; arm_timer at=33.077\n"
        "worker_exited rank=1 signal=15\n"
        "all_gone -> disarm_timer; finish failed\n");
}

static void a_node_ends_with_the_job(void **state) {
    (void)state;
    check((struct virtual_settings){.seed = 6,
              .node_count = 2,
              .worker_count = 2,
              .max_restarts = 1,
              .weather = {.worker_fails = 30}},
        "start -> join ticket=1 attempt=0\n"
        "joined ticket=1 restarts=0 nodes=2 -> start_workers attempt=0\n"
        "workers_started\n"
        "worker_exited rank=1 code=0\n"
        "peer_restart attempt=1 -> signal_workers 15; arm_timer at=32.874\n"
        "worker_exited rank=0 signal=15\n"
        "all_gone -> disarm_timer; join ticket=2 attempt=1\n"
        "joined ticket=2 restarts=1 nodes=2 -> start_workers attempt=1\n"
        "workers_started\n"
        "worker_exited rank=0 code=0\n"
        "peer_failed -> signal_workers 15; arm_timer at=36.183\n"
        "worker_exited rank=1 signal=15\n"
        "all_gone -> disarm_timer; finish peer_failed\n");
}

static void a_user_ends_the_second_attempt(void **state) {
    (void)state;
    check((struct virtual_settings){.seed = 2,
              .node_count = 1,
              .worker_count = 2,
              .max_restarts = 1,
              .weather = {.worker_fails = 40, .worker_is_stubborn = 50, .user_signals = 60}},
        "start -> join ticket=1 attempt=0\n"
        "joined ticket=1 restarts=0 nodes=1 -> start_workers attempt=0\n"
        "workers_started\n"
        "worker_exited rank=1 code=1 -> signal_workers 15; arm_timer at=33.474\n"
        "worker_exited rank=0 code=1\n"
        "all_gone -> disarm_timer; join ticket=2 attempt=1\n"
        "joined ticket=2 restarts=1 nodes=1 -> start_workers attempt=1\n"
        "workers_started\n"
        "signal_received 15 -> signal_workers 15; arm_timer at=35.063\n"
        "worker_exited rank=1 signal=15\n"
        "worker_exited rank=0 signal=15\n"
        "all_gone -> disarm_timer; finish signalled=15\n");
}

static void an_orphan_that_will_not_go_is_killed(void **state) {
    (void)state;
    check((struct virtual_settings){.seed = 1,
              .node_count = 1,
              .worker_count = 2,
              .weather = {.leaves_orphan = 60, .worker_is_stubborn = 60}},
        "start -> join ticket=1 attempt=0\n"
        "joined ticket=1 restarts=0 nodes=1 -> start_workers attempt=0\n"
        "workers_started\n"
        "worker_exited rank=0 code=0\n"
        "worker_exited rank=1 code=0 -> signal_workers 15; arm_timer at=33.112\n"
        "timer_fired -> kill_workers; arm_timer at=63.112\n"
        "all_gone -> disarm_timer; finish succeeded\n");
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(two_nodes_finish_together),
    cmocka_unit_test(a_node_whose_worker_fails_takes_the_job_to_the_next_attempt),
    cmocka_unit_test(a_node_follows_a_restart_asked_for_elsewhere),
    cmocka_unit_test(a_node_without_restarts_left_says_so_before_it_stops),
    cmocka_unit_test(a_node_ends_with_the_job),
    cmocka_unit_test(a_user_ends_the_second_attempt),
    cmocka_unit_test(an_orphan_that_will_not_go_is_killed),
};

TEST_MAIN(tests)
