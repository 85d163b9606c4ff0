/* SPDX-License-Identifier: BSD-3-Clause */
/* What the agent of one node lives through in jobs that go as told here, line by line: each event,
 * and what its machine wanted done. Every message takes a millisecond. A running agent logs the
 * same lines. */
#include "unit.h"

#include <stdio.h>

#include "base/random.h"
#include "whole_cluster.h"

#define STORY(...)                                                                                 \
    .story = (const struct whole_happens[]){__VA_ARGS__},                                          \
    .story_length =                                                                                \
        sizeof((const struct whole_happens[]){__VA_ARGS__}) / sizeof(struct whole_happens)

/* Tells the story of this node; with STORY_SHOWN in the environment it is shown, too. */
static void check(struct whole_settings settings, const char *expected) {
    settings.is_calm = true;
    settings.is_hosted = true;
    settings.shutdown_timeout = 30;
    settings.workers = settings.workers == 0 ? 1 : settings.workers;
    settings.is_printed = getenv("STORY_SHOWN") != NULL;
    struct whole_outcome outcome = whole_cluster_play(&settings);
    if (outcome.complaint != NULL) {
        fail_msg("%s", outcome.complaint);
    }
    assert_string_equal(text_string(&outcome.transcript), expected);
    whole_outcome_clear(&outcome);
}

static struct rendezvous_settings sized(int minimum, int maximum) {
    struct rendezvous_settings settings;
    rendezvous_settings_init(&settings);
    settings.minimum_nodes = minimum;
    settings.maximum_nodes = maximum;
    settings.last_call_timeout = duration_from_seconds(1);
    return settings;
}

/* A node alone. */

TEST(a_node_alone_starts_its_workers_again_and_ends) {
    check((struct whole_settings){.kind = MEMBERSHIP_ALONE,
              .nodes = 1,
              .workers = 2,
              .max_restarts = 1,
              .work_seconds = 10,
              STORY({.at = 5, .deed = WHOLE_WORKER_ENDS, .number = 1})},
        "0.000 comes\n"
        "0.000 start -> join ticket=1 attempt=0\n"
        "0.000 joined ticket=1 restarts=0 nodes=1 -> start_workers attempt=0\n"
        "0.001 workers_started\n"
        "5.000 worker 0 ends with 1\n"
        "5.000 worker_exited rank=0 code=1 -> signal_workers 15; arm_timer at=35.000\n"
        "5.001 worker 1 ends with -15\n"
        "5.001 worker_exited rank=1 signal=15\n"
        "5.001 all_gone -> disarm_timer; join ticket=2 attempt=1\n"
        "5.002 joined ticket=2 restarts=1 nodes=1 -> start_workers attempt=1\n"
        "5.003 workers_started\n"
        "15.003 worker 1 ends with 0\n"
        "15.003 worker 0 ends with 0\n"
        "15.003 worker_exited rank=1 code=0\n"
        "15.003 worker_exited rank=0 code=0 -> signal_workers 15; arm_timer at=45.003\n"
        "15.003 all_gone -> disarm_timer; finish succeeded\n"
        "15.003 exits with 0\n");
}

TEST(a_user_ends_a_node) {
    check((struct whole_settings){.kind = MEMBERSHIP_ALONE,
              .nodes = 1,
              .work_seconds = 10,
              STORY({.at = 5, .deed = WHOLE_SIGNAL, .number = 2})},
        "0.000 comes\n"
        "0.000 start -> join ticket=1 attempt=0\n"
        "0.000 joined ticket=1 restarts=0 nodes=1 -> start_workers attempt=0\n"
        "0.001 workers_started\n"
        "5.000 receives signal 2\n"
        "5.000 signal_received 2 -> signal_workers 2; arm_timer at=35.000\n"
        "5.001 worker 0 ends with -2\n"
        "5.001 worker_exited rank=0 signal=2\n"
        "5.001 all_gone -> disarm_timer; finish signalled=2\n"
        "5.001 exits with 1\n");
}

/* Fixed nodes. */

TEST(fixed_nodes_finish_together) {
    check((struct whole_settings){.kind = MEMBERSHIP_FIXED,
              .rendezvous = sized(2, 2),
              .nodes = 2,
              .work_seconds = 10,
              STORY({.at = 5, .deed = WHOLE_WORKERS_END, .node = 1})},
        "0.000 comes\n"
        "0.000 start -> join ticket=1 attempt=0\n"
        "0.009 joined ticket=1 restarts=0 nodes=2 -> start_workers attempt=0\n"
        "0.010 workers_started\n"
        "10.010 worker 0 ends with 0\n"
        "10.010 worker_exited rank=0 code=0 -> signal_workers 15; arm_timer at=40.010\n"
        "10.010 all_gone -> disarm_timer; enter_barrier attempt=0\n"
        "10.016 barrier_passed -> announce_success; finish succeeded\n"
        "10.017 exits with 0\n");
}

TEST(a_fixed_node_follows_a_restart_asked_for_elsewhere) {
    check((struct whole_settings){.kind = MEMBERSHIP_FIXED,
              .rendezvous = sized(2, 2),
              .nodes = 2,
              .max_restarts = 1,
              .work_seconds = 10,
              STORY({.at = 5, .deed = WHOLE_WORKER_ENDS, .node = 1, .number = 1})},
        "0.000 comes\n"
        "0.000 start -> join ticket=1 attempt=0\n"
        "0.009 joined ticket=1 restarts=0 nodes=2 -> start_workers attempt=0\n"
        "0.010 workers_started\n"
        "5.004 \"another node restarts its workers: joining attempt 1\"\n"
        "5.004 peer_restart attempt=1 -> signal_workers 15; arm_timer at=35.004\n"
        "5.005 worker 0 ends with -15\n"
        "5.005 worker_exited rank=0 signal=15\n"
        "5.005 all_gone -> disarm_timer; join ticket=2 attempt=1\n"
        "5.016 joined ticket=2 restarts=1 nodes=2 -> start_workers attempt=1\n"
        "5.017 workers_started\n"
        "15.017 worker 0 ends with 0\n"
        "15.017 worker_exited rank=0 code=0 -> signal_workers 15; arm_timer at=45.017\n"
        "15.017 all_gone -> disarm_timer; enter_barrier attempt=1\n"
        "15.023 barrier_passed -> announce_success; finish succeeded\n"
        "15.024 exits with 0\n");
}

TEST(a_fixed_node_ends_with_the_job) {
    check((struct whole_settings){.kind = MEMBERSHIP_FIXED,
              .rendezvous = sized(2, 2),
              .nodes = 2,
              .work_seconds = 10,
              .transcript_of = 1,
              STORY({.at = 5, .deed = WHOLE_WORKER_ENDS, .number = 1})},
        "0.000 comes\n"
        "0.000 start -> join ticket=1 attempt=0\n"
        "0.015 joined ticket=1 restarts=0 nodes=2 -> start_workers attempt=0\n"
        "0.016 workers_started\n"
        "5.008 peer_failed -> signal_workers 15; arm_timer at=35.008\n"
        "5.009 worker 0 ends with -15\n"
        "5.009 worker_exited rank=0 signal=15\n"
        "5.009 all_gone -> disarm_timer; finish peer_failed\n"
        "5.009 exits with 1\n");
}

/* Nodes that come and go. */

TEST(nodes_meet_work_and_end) {
    check((struct whole_settings){.kind = MEMBERSHIP_CHANGING,
              .nodes = 2,
              .rendezvous = sized(2, 2),
              .work_seconds = 10,
              .transcript_of = 1},
        "0.000 comes\n"
        "0.000 start -> join ticket=1 attempt=0\n"
        "0.021 \"round 0 of job 'job': this node is rank 1 of 2 nodes\"\n"
        "0.031 joined ticket=1 restarts=0 nodes=2 -> start_workers attempt=0\n"
        "0.032 workers_started\n"
        "10.032 worker 0 ends with 0\n"
        "10.032 worker_exited rank=0 code=0 -> signal_workers 15; arm_timer at=40.032\n"
        "10.032 all_gone -> disarm_timer; enter_barrier attempt=0\n"
        "10.038 barrier_passed -> announce_success; finish succeeded\n"
        "10.042 exits with 0\n");
}

TEST(a_failure_is_a_restart_on_all_nodes) {
    check((struct whole_settings){.kind = MEMBERSHIP_CHANGING,
              .nodes = 2,
              .rendezvous = sized(2, 2),
              .max_restarts = 1,
              .work_seconds = 10,
              .transcript_of = 1,
              STORY({.at = 5, .deed = WHOLE_WORKER_ENDS, .number = 1})},
        "0.000 comes\n"
        "0.000 start -> join ticket=1 attempt=0\n"
        "0.021 \"round 0 of job 'job': this node is rank 1 of 2 nodes\"\n"
        "0.031 joined ticket=1 restarts=0 nodes=2 -> start_workers attempt=0\n"
        "0.032 workers_started\n"
        "5.013 \"joining the job's next round: rank 0 (local_rank 0) on node0 failed: exit code "
        "1\"\n"
        "5.013 round_over restarts=1 -> signal_workers 15; arm_timer at=35.013\n"
        "5.014 worker 0 ends with -15\n"
        "5.014 worker_exited rank=0 signal=15\n"
        "5.014 all_gone -> disarm_timer; join ticket=2 attempt=0\n"
        "5.014 \"round 1 of job 'job': this node is rank 1 of 2 nodes; rank 0 (local_rank 0) on "
        "node0 failed: exit code 1\"\n"
        "5.023 joined ticket=2 restarts=1 nodes=2 -> start_workers attempt=1\n"
        "5.024 workers_started\n"
        "15.024 worker 0 ends with 0\n"
        "15.024 worker_exited rank=0 code=0 -> signal_workers 15; arm_timer at=45.024\n"
        "15.024 all_gone -> disarm_timer; enter_barrier attempt=1\n"
        "15.030 barrier_passed -> announce_success; finish succeeded\n"
        "15.034 exits with 0\n");
}

TEST(a_last_failure_ends_the_job_with_its_reason) {
    check((struct whole_settings){.kind = MEMBERSHIP_CHANGING,
              .nodes = 2,
              .rendezvous = sized(2, 2),
              .work_seconds = 10,
              .transcript_of = 1,
              STORY({.at = 5, .deed = WHOLE_WORKER_ENDS, .number = 1})},
        "0.000 comes\n"
        "0.000 start -> join ticket=1 attempt=0\n"
        "0.021 \"round 0 of job 'job': this node is rank 1 of 2 nodes\"\n"
        "0.031 joined ticket=1 restarts=0 nodes=2 -> start_workers attempt=0\n"
        "0.032 workers_started\n"
        "5.027 peer_failed -> signal_workers 15; arm_timer at=35.027\n"
        "5.028 worker 0 ends with -15\n"
        "5.028 worker_exited rank=0 signal=15\n"
        "5.028 all_gone -> disarm_timer; finish peer_failed\n"
        "5.028 exits with 1\n");
}

TEST(those_who_are_left_go_on_without_a_lost_node) {
    check((struct whole_settings){.kind = MEMBERSHIP_CHANGING,
              .nodes = 3,
              .rendezvous = sized(2, 3),
              .work_seconds = 10,
              STORY({.at = 5, .deed = WHOLE_MACHINE_OFF, .node = 2})},
        "0.000 comes\n"
        "0.000 start -> join ticket=1 attempt=0\n"
        "0.034 \"round 0 of job 'job': this node is rank 0 of 3 nodes\"\n"
        "0.038 joined ticket=1 restarts=0 nodes=3 -> start_workers attempt=0\n"
        "0.039 workers_started\n"
        "8.518 \"joining the job's next round: node node2 (pid 102) is gone\"\n"
        "8.518 round_over restarts=0 -> signal_workers 15; arm_timer at=38.518\n"
        "8.519 worker 0 ends with -15\n"
        "8.519 worker_exited rank=0 signal=15\n"
        "8.519 all_gone -> disarm_timer; join ticket=2 attempt=0\n"
        "8.519 \"round 1 of job 'job': this node is rank 0 of 2 nodes; node node2 (pid 102) is "
        "gone\"\n"
        "8.529 joined ticket=2 restarts=0 nodes=2 -> start_workers attempt=0\n"
        "8.530 workers_started\n"
        "18.530 worker 0 ends with 0\n"
        "18.530 worker_exited rank=0 code=0 -> signal_workers 15; arm_timer at=48.530\n"
        "18.530 all_gone -> disarm_timer; enter_barrier attempt=0\n"
        "18.540 barrier_passed -> announce_success; finish succeeded\n"
        "18.545 exits with 0\n");
}

TEST(a_node_that_comes_is_let_in) {
    check((struct whole_settings){.kind = MEMBERSHIP_CHANGING,
              .nodes = 2,
              .rendezvous = sized(2, 3),
              .work_seconds = 10,
              STORY({.at = 5, .deed = WHOLE_NODE_COMES})},
        "0.000 comes\n"
        "0.000 start -> join ticket=1 attempt=0\n"
        "1.027 \"round 0 of job 'job': this node is rank 0 of 2 nodes\"\n"
        "1.033 joined ticket=1 restarts=0 nodes=2 -> start_workers attempt=0\n"
        "1.034 workers_started\n"
        "5.037 \"joining the job's next round: a node has joined\"\n"
        "5.037 round_over restarts=0 -> signal_workers 15; arm_timer at=35.037\n"
        "5.038 worker 0 ends with -15\n"
        "5.038 worker_exited rank=0 signal=15\n"
        "5.038 all_gone -> disarm_timer; join ticket=2 attempt=0\n"
        "5.038 \"round 1 of job 'job': this node is rank 0 of 3 nodes; a node has joined\"\n"
        "5.048 joined ticket=2 restarts=0 nodes=3 -> start_workers attempt=0\n"
        "5.049 workers_started\n"
        "15.049 worker 0 ends with 0\n"
        "15.049 worker_exited rank=0 code=0 -> signal_workers 15; arm_timer at=45.049\n"
        "15.049 all_gone -> disarm_timer; enter_barrier attempt=0\n"
        "15.059 barrier_passed -> announce_success; finish succeeded\n"
        "15.064 exits with 0\n");
}

#define AWAITED "\"still no connection to the job's store at the store, "

TEST(a_node_that_was_cut_off_comes_back) {
    check((struct whole_settings){.kind = MEMBERSHIP_CHANGING,
              .nodes = 3,
              .rendezvous = sized(2, 3),
              .work_seconds = 20,
              .transcript_of = 1,
              STORY({.at = 5, .deed = WHOLE_LINK_BROKEN, .node = 1, .number = 8000})},
        "0.000 comes\n"
        "0.000 start -> join ticket=1 attempt=0\n"
        "0.028 \"round 0 of job 'job': this node is rank 1 of 3 nodes\"\n"
        "0.042 joined ticket=1 restarts=0 nodes=3 -> start_workers attempt=0\n"
        "0.043 workers_started\n"
        "5.000 link broken to the store from the store\n"
        "8.510 is silent for the store\n"
        "8.510 finds the store silent\n"
        "8.510 \"joining the job's next round: the store is out of reach\"\n"
        "8.510 round_over -> signal_workers 15; arm_timer at=38.510\n"
        "8.511 worker 0 ends with -15\n"
        "8.511 worker_exited rank=0 signal=15\n"
        "8.511 all_gone -> disarm_timer; join ticket=2 attempt=0\n"
        "13.000 link mended\n"
        "14.510 \"still no connection to the job's store at the store, 6 s after it was lost; this "
        "node gives up in 24 s at the latest (--host-timeout)\"\n"
        "15.551 \"round 2 of job 'job': this node is rank 1 of 3 nodes; a node has joined\"\n"
        "15.560 joined ticket=2 restarts=0 nodes=3 -> start_workers attempt=0\n"
        "15.561 workers_started\n"
        "35.561 worker 0 ends with 0\n"
        "35.561 worker_exited rank=0 code=0 -> signal_workers 15; arm_timer at=65.561\n"
        "35.561 all_gone -> disarm_timer; enter_barrier attempt=0\n"
        "35.567 barrier_passed -> announce_success; finish succeeded\n"
        "35.571 exits with 0\n");
}

TEST(an_agent_that_stalls_is_left_behind_and_comes_back) {
    check((struct whole_settings){.kind = MEMBERSHIP_CHANGING,
              .nodes = 3,
              .rendezvous = sized(2, 3),
              .work_seconds = 60,
              .transcript_of = 1,
              STORY({.at = 5, .deed = WHOLE_AGENT_STOPPED, .node = 1, .number = 30000})},
        "0.000 comes\n"
        "0.000 start -> join ticket=1 attempt=0\n"
        "0.028 \"round 0 of job 'job': this node is rank 1 of 3 nodes\"\n"
        "0.042 joined ticket=1 restarts=0 nodes=3 -> start_workers attempt=0\n"
        "0.043 workers_started\n"
        "5.000 is stopped\n"
        "13.843 its guardian ends its workers\n"
        "13.873 worker 0 ends with -9\n"
        "35.000 goes on\n"
        "35.000 \"joining the job's next round: the store has let go\"\n"
        "35.000 round_over -> signal_workers 15; arm_timer at=65.000\n"
        "35.000 hears that it stood still\n"
        "35.000 worker_exited rank=0 signal=9\n"
        "35.000 all_gone -> disarm_timer; join ticket=2 attempt=0\n"
        "35.041 \"round 2 of job 'job': this node is rank 1 of 3 nodes; a node has joined\"\n"
        "35.050 joined ticket=2 restarts=0 nodes=3 -> start_workers attempt=0\n"
        "35.051 workers_started\n"
        "95.051 worker 0 ends with 0\n"
        "95.051 worker_exited rank=0 code=0 -> signal_workers 15; arm_timer at=125.051\n"
        "95.051 all_gone -> disarm_timer; enter_barrier attempt=0\n"
        "95.057 barrier_passed -> announce_success; finish succeeded\n"
        "95.061 exits with 0\n");
}

TEST(everybody_ends_when_the_host_is_lost) {
    check((struct whole_settings){.kind = MEMBERSHIP_CHANGING,
              .nodes = 2,
              .rendezvous = sized(2, 2),
              .work_seconds = 20,
              .transcript_of = 1,
              STORY({.at = 5, .deed = WHOLE_AGENT_KILLED})},
        "0.000 comes\n"
        "0.000 start -> join ticket=1 attempt=0\n"
        "0.021 \"round 0 of job 'job': this node is rank 1 of 2 nodes\"\n"
        "0.031 joined ticket=1 restarts=0 nodes=2 -> start_workers attempt=0\n"
        "0.032 workers_started\n"
        "5.001 \"joining the job's next round: the store is out of reach\"\n"
        "5.001 round_over -> signal_workers 15; arm_timer at=35.001\n"
        "5.002 worker 0 ends with -15\n"
        "5.002 worker_exited rank=0 signal=15\n"
        "5.002 all_gone -> disarm_timer; join ticket=2 attempt=0\n"
        "10.003 join_failed ticket=2 -> announce_leave; finish join_failed\n"
        "10.003 exits with 1\n");
}

TEST(a_host_that_falls_silent_is_awaited_aloud_and_given_up) {
    check((struct whole_settings){.kind = MEMBERSHIP_CHANGING,
              .nodes = 2,
              .rendezvous = sized(2, 2),
              .work_seconds = 20,
              .transcript_of = 1,
              STORY({.at = 5, .deed = WHOLE_MACHINE_OFF})},
        "0.000 comes\n"
        "0.000 start -> join ticket=1 attempt=0\n"
        "0.021 \"round 0 of job 'job': this node is rank 1 of 2 nodes\"\n"
        "0.031 joined ticket=1 restarts=0 nodes=2 -> start_workers attempt=0\n"
        "0.032 workers_started\n"
        "5.000 link broken to the store from the store\n"
        "8.510 finds the store silent\n"
        "8.510 \"joining the job's next round: the store is out of reach\"\n"
        "8.510 round_over -> signal_workers 15; arm_timer at=38.510\n"
        "8.511 worker 0 ends with -15\n"
        "8.511 worker_exited rank=0 signal=15\n"
        "8.511 all_gone -> disarm_timer; join ticket=2 attempt=0\n"
        "14.510 \"still no connection to the job's store at the store, 6 s after it was lost; this "
        "node gives up in 24 s at the latest (--host-timeout)\"\n"
        "20.510 \"still no connection to the job's store at the store, 12 s after it was lost; "
        "this node gives up in 18 s at the latest (--host-timeout)\"\n"
        "26.510 \"still no connection to the job's store at the store, 18 s after it was lost; "
        "this node gives up in 12 s at the latest (--host-timeout)\"\n"
        "32.510 \"still no connection to the job's store at the store, 24 s after it was lost; "
        "this node gives up in 6 s at the latest (--host-timeout)\"\n"
        "38.510 join_failed ticket=2 -> announce_leave; finish join_failed\n"
        "38.510 exits with 1\n");
}

/* The host's agent is gone when its machine is back: what refuses a connection is no host. */
TEST(a_node_that_was_cut_off_is_told_that_the_host_is_gone) {
    check((struct whole_settings){.kind = MEMBERSHIP_CHANGING,
              .nodes = 2,
              .rendezvous = sized(1, 2),
              .work_seconds = 100,
              .transcript_of = 1,
              STORY({.at = 5, .deed = WHOLE_LINK_BROKEN, .node = 1, .number = 10000},
                  {.at = 12, .deed = WHOLE_AGENT_KILLED})},
        "0.000 comes\n"
        "0.000 start -> join ticket=1 attempt=0\n"
        "0.023 \"round 0 of job 'job': this node is rank 1 of 2 nodes\"\n"
        "0.031 joined ticket=1 restarts=0 nodes=2 -> start_workers attempt=0\n"
        "0.032 workers_started\n"
        "5.000 link broken to the store from the store\n"
        "8.510 is silent for the store\n"
        "8.510 finds the store silent\n"
        "8.510 \"joining the job's next round: the store is out of reach\"\n"
        "8.510 round_over -> signal_workers 15; arm_timer at=38.510\n"
        "8.511 worker 0 ends with -15\n"
        "8.511 worker_exited rank=0 signal=15\n"
        "8.511 all_gone -> disarm_timer; join ticket=2 attempt=0\n"
        "14.510 \"still no connection to the job's store at the store, 6 s after it was lost; this "
        "node gives up in 24 s at the latest (--host-timeout)\"\n"
        "15.000 link mended\n"
        "20.510 \"still no connection to the job's store at the store, 12 s after it was lost; "
        "this node gives up in 18 s at the latest (--host-timeout)\"\n"
        "20.512 join_failed ticket=2 -> announce_leave; finish join_failed\n"
        "20.512 exits with 1\n");
}

TEST(a_signal_to_all_nodes_reaches_each_worker_once) {
    check((struct whole_settings){.kind = MEMBERSHIP_CHANGING,
              .nodes = 2,
              .rendezvous = sized(1, 2),
              .work_seconds = 20,
              .demands = {.no_start_after_signal = true},
              STORY({.at = 5, .deed = WHOLE_SIGNAL, .node = 1, .number = 15},
                  {.at = 6, .deed = WHOLE_SIGNAL, .number = 15})},
        "0.000 comes\n"
        "0.000 start -> join ticket=1 attempt=0\n"
        "0.021 \"round 0 of job 'job': this node is rank 0 of 2 nodes\"\n"
        "0.027 joined ticket=1 restarts=0 nodes=2 -> start_workers attempt=0\n"
        "0.028 workers_started\n"
        "5.015 \"another node was told to end by SIGTERM, which may be on its way to this node, "
        "too: the workers here run on for 2 s (--settling-time)\"\n"
        "6.000 receives signal 15\n"
        "6.000 signal_received 15 -> announce_leave signal=15; signal_workers 15; arm_timer "
        "at=36.000\n"
        "6.000 \"node node0, which hosts the job's store, was told to end by SIGTERM; no other "
        "node can take its place (with --rdzv-backend dir one does)\"\n"
        "6.001 worker 0 ends with -15\n"
        "6.001 worker_exited rank=0 signal=15\n"
        "6.001 all_gone -> disarm_timer; finish signalled=15\n"
        "6.005 exits with 1\n");
}

TEST(a_torchrun_node_takes_part) {
    check((struct whole_settings){.kind = MEMBERSHIP_CHANGING,
              .nodes = 2,
              .torch_nodes = 1,
              .rendezvous = sized(2, 2),
              .max_restarts = 3,
              .work_seconds = 10,
              STORY({.at = 5, .deed = WHOLE_WORKER_ENDS, .node = 1, .number = 1})},
        "0.000 comes\n"
        "0.000 start -> join ticket=1 attempt=0\n"
        "0.019 \"round 0 of job 'job': this node is rank 0 of 2 nodes\"\n"
        "1.017 joined ticket=1 restarts=0 nodes=2 -> start_workers attempt=0\n"
        "1.018 workers_started\n"
        "5.016 \"joining the job's next round: a node has left the round\"\n"
        "5.016 round_over -> signal_workers 15; arm_timer at=35.016\n"
        "5.017 worker 0 ends with -15\n"
        "5.017 worker_exited rank=0 signal=15\n"
        "5.017 all_gone -> disarm_timer; join ticket=2 attempt=0\n"
        "5.024 \"round 1 of job 'job': this node is rank 0 of 2 nodes; a node has left the "
        "round\"\n"
        "6.017 joined ticket=2 restarts=0 nodes=2 -> start_workers attempt=0\n"
        "6.018 workers_started\n"
        "16.018 worker 0 ends with 0\n"
        "16.018 worker_exited rank=0 code=0 -> signal_workers 15; arm_timer at=46.018\n"
        "16.018 all_gone -> disarm_timer; enter_barrier attempt=0\n"
        "16.026 barrier_passed -> announce_success; finish succeeded\n"
        "16.039 exits with 0\n");
}
