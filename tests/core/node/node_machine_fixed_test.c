/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of a fixed node: node 1 of 2, whose node 0 hosts the store. */
#include "unit.h"

#include "node_play.h"

#define WRITE_FAILURE(value)                                                                       \
    "decide gathered/0 " value "; decide start/0 " value "; decide end/0 " value                   \
    "; decide gathered/1 " value "; decide start/1 " value "; decide end/1 " value

static void open_running(struct play *play, int max_restarts) {
    play_open(play, MEMBERSHIP_FIXED, max_restarts);
    play_join_fixed(play);
    assert_int_equal(play_phase(play), AGENT_RUNNING);
    play_forget(play);
}

static void open_in_barrier(struct play *play, int max_restarts) {
    open_running(play, max_restarts);
    play_finish_workers(play);
    assert_int_equal(play_phase(play), AGENT_LEAVING);
    play_forget(play);
}

TEST(a_node_joins_works_and_leaves_with_the_others) {
    struct play play;
    play_open(&play, MEMBERSHIP_FIXED, 0);
    play_join_fixed(&play);
    play_expect(&play,
        "connect; add init 1; set_role_info role_info/1; wait assigned_ranks/1; check coordinated; "
        "get assigned_ranks/1; wait end/0; start_workers attempt=0");
    assert_int_equal(play_knowledge(&play)->placement.ranks.base_rank, 2);
    play_finish_workers(&play);
    play_expect(&play, "signal_workers 15; add finished/0 1");
    play_decide(&play, ROUND_KEY_END, 0, "done");
    play_expect(&play, "get end/0; finish succeeded; flush seconds=1");
    play_membership_kind(&play, MEMBERSHIP_EVENT_LEFT);
    play_expect(&play, "settled");
    play_close(&play);
}

TEST(a_restart_elsewhere_is_a_restart_here) {
    struct play play;
    open_running(&play, 1);
    play_decide(&play, ROUND_KEY_END, 0, "restart");
    play_expect(&play, "get end/0; note another node restarts its workers: joining attempt 1; "
                       "signal_workers 15");
    play_agent_kind(&play, AGENT_EVENT_ALL_GONE);
    play_expect(&play, "add ready/1 1; wait start/1");
    play_decide(&play, ROUND_KEY_START, 1, "go");
    play_expect(&play, "get start/1; wait end/1; start_workers attempt=1");
    play_close(&play);
}

TEST(a_restart_here_is_told_before_the_workers_are_stopped) {
    struct play play;
    open_running(&play, 1);
    play_exit(&play, 0, 3);
    play_expect(&play, "announce_restart attempt=1; signal_workers 15; decide end/0 restart");
    play_close(&play);
}

/* Had it joined the next attempt first, it would not be heard any more. */
TEST(a_restart_is_told_before_the_next_attempt_is_joined) {
    struct play play;
    open_running(&play, 1);
    play_queue(&play, play_exit_of(0, 3));
    play_queue(&play, (struct node_event){.part = NODE_AGENT, .agent.kind = AGENT_EVENT_ALL_GONE});
    play_run(&play);
    play_expect(&play, "announce_restart attempt=1; signal_workers 15; decide end/0 restart; "
                       "add ready/1 1");
    play_close(&play);
}

TEST(a_failure_elsewhere_stops_the_workers_here) {
    struct play play;
    open_running(&play, 1);
    play_decide(&play, ROUND_KEY_END, 0, "failed 0");
    play_expect(&play, "get end/0; signal_workers 15");
    assert_string_equal(play_knowledge(&play)->trouble, "a node failed (node 0)");
    play_agent_kind(&play, AGENT_EVENT_ALL_GONE);
    play_expect(&play, "finish peer_failed; flush seconds=1");
    play_close(&play);
}

TEST(a_failure_here_is_told_to_all) {
    struct play play;
    open_running(&play, 0);
    play_exit(&play, 0, 3);
    play_expect(
        &play, "announce_failure; signal_workers 15; " WRITE_FAILURE("failed 1") "; get end/0");
    play_agent_kind(&play, AGENT_EVENT_ALL_GONE);
    play_expect(&play, "finish failed; flush seconds=1");
    assert_null(play_knowledge(&play)->trouble);
    play_close(&play);
}

TEST(of_two_failures_the_second_node_learns_whose_was_first) {
    struct play play;
    open_running(&play, 0);
    play_exit(&play, 0, 3);
    play_agent_kind(&play, AGENT_EVENT_ALL_GONE);
    play_forget(&play);
    play_decide(&play, ROUND_KEY_END, 0, "failed 0");
    play_expect(&play, "");
    assert_string_equal(play_knowledge(&play)->trouble, "a node failed (node 0)");
    play_close(&play);
}

TEST(a_store_that_is_never_reached_fails_the_join) {
    struct play play;
    play_open(&play, MEMBERSHIP_FIXED, 0);
    play_agent_kind(&play, AGENT_EVENT_START);
    play_fixed_kind(&play, ROUND_EVENT_CONNECTION_LOST);
    play_expect(&play, "connect; finish join_failed; flush seconds=1");
    assert_string_equal(play_knowledge(&play)->trouble,
        "the store cannot be reached: no connection to the job's store at host:29400");
    play_close(&play);
}

TEST(a_store_that_is_reached_too_late_is_not_blamed_on_the_others) {
    struct play play;
    play_open(&play, MEMBERSHIP_FIXED, 0);
    play_agent_kind(&play, AGENT_EVENT_START);
    play.now = instant_after(play.now, duration_from_seconds(900));
    play_fixed_kind(&play, ROUND_EVENT_TIMER_FIRED);
    assert_string_equal(play_knowledge(&play)->trouble,
        "not all nodes joined in time: no connection to the job's store at host:29400");
    play_close(&play);
}

TEST(who_waits_in_vain_for_the_others_is_told_what_the_job_needs) {
    struct play play;
    play_open(&play, MEMBERSHIP_FIXED, 0);
    play_agent_kind(&play, AGENT_EVENT_START);
    play_fixed_kind(&play, ROUND_EVENT_CONNECTED);
    play.now = instant_after(play.now, duration_from_seconds(900));
    play_fixed_kind(&play, ROUND_EVENT_TIMER_FIRED);
    assert_string_equal(play_knowledge(&play)->trouble,
        "not all nodes joined in time: the job needs all of its 2 nodes (--nnodes), with ranks "
        "from 0 to 1 (--node-rank), within 900 s (--rdzv-conf timeout)");
    play_close(&play);
}

#define STORE_GONE                                                                                 \
    "note the store is gone (node 0): the job has failed; the workers here have 1 s to fail by "   \
    "themselves, and say why; arm_timer at=1.000"

TEST(a_lost_store_is_a_failed_peer) {
    struct play play;
    open_running(&play, 1);
    play_fixed_kind(&play, ROUND_EVENT_CONNECTION_LOST);
    play_expect(&play, STORE_GONE);
    play_membership_kind(&play, MEMBERSHIP_EVENT_TIMER_FIRED);
    play_expect(&play, "signal_workers 15");
    assert_string_equal(play_knowledge(&play)->trouble, "the store is gone (node 0)");
    play_close(&play);
}

TEST(a_worker_that_fails_when_the_store_is_lost_is_not_ended_by_a_signal) {
    struct play play;
    open_running(&play, 1);
    play_fixed_kind(&play, ROUND_EVENT_CONNECTION_LOST);
    play_expect(&play, STORE_GONE);
    play_exit(&play, 0, 1);
    assert_int_equal(node_machine_workers(play.node)->failure_count, 1);
    assert_false(node_machine_workers(play.node)->failures[0].is_from_our_signal);
    assert_true(play_knowledge(&play)->is_cut_off);
    play_close(&play);
}

TEST(a_node_that_is_done_is_not_kept_by_a_failure_elsewhere) {
    struct play play;
    open_in_barrier(&play, 1);
    play_decide(&play, ROUND_KEY_END, 0, "failed 0");
    play_expect(&play, "get end/0; finish succeeded; flush seconds=1");
    play_close(&play);
}

TEST(a_node_that_is_done_is_called_back_by_a_restart_elsewhere) {
    struct play play;
    open_in_barrier(&play, 1);
    play_decide(&play, ROUND_KEY_END, 0, "restart");
    play_expect(&play, "get end/0; note another node restarts its workers: joining attempt 1; "
                       "add ready/1 1; wait start/1");
    play_close(&play);
}

/* The store is to have an answer for the last words: a node that ends before they are on their way
 * leaves the others to their timeouts. */

TEST(a_node_that_cannot_follow_says_so_before_it_ends) {
    struct play play;
    open_in_barrier(&play, 0);
    play_decide(&play, ROUND_KEY_END, 0, "restart");
    play_expect(&play,
        "get end/0; note another node restarts its workers: joining attempt 1; "
        "announce_failure; finish peer_failed; " WRITE_FAILURE("failed 1") "; get end/0; flush "
                                                                           "seconds=1");
    play_close(&play);
}

TEST(a_node_that_leaves_says_so_before_it_ends) {
    struct play play;
    open_in_barrier(&play, 0);
    play_signal(&play, 15);
    play_expect(
        &play, "finish signalled=15; " WRITE_FAILURE("failed 1 signal 15") "; flush seconds=1");
    play_membership_kind(&play, MEMBERSHIP_EVENT_LEFT);
    play_expect(&play, "settled");
    play_close(&play);
}
