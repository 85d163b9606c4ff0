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

/* Had it joined the next attempt first, it would not be heard any more. */
TEST_OF(play, a_restart_is_told_before_the_next_attempt_is_joined, open_running(&fixture, 1),
    play_close) {
    play_queue(fixture, play_exit_of(0, 3));
    play_queue(
        fixture, (struct node_event){.part = NODE_AGENT, .agent.kind = AGENT_EVENT_ALL_GONE});
    play_run(fixture);
    play_expect(fixture, "announce_restart attempt=1; signal_workers 15; decide end/0 restart; "
                         "add ready/1 1");
}

TEST_OF(play, a_store_that_is_never_reached_fails_the_join,
    play_open(&fixture, MEMBERSHIP_FIXED, 0), play_close) {
    play_agent_kind(fixture, AGENT_EVENT_START);
    play_fixed_kind(fixture, ROUND_EVENT_CONNECTION_LOST);
    play_expect(fixture, "connect; finish join_failed; flush seconds=1");
    assert_string_equal(play_knowledge(fixture)->trouble,
        "the store cannot be reached: no connection to the job's store at host:29400");
}

#define STORE_GONE                                                                                 \
    "note the store is gone (node 0): the job has failed; the workers here have 1 s to fail by "   \
    "themselves, and say why; arm_timer at=1.000"

TEST_OF(play, a_lost_store_is_a_failed_peer, open_running(&fixture, 1), play_close) {
    play_fixed_kind(fixture, ROUND_EVENT_CONNECTION_LOST);
    play_expect(fixture, STORE_GONE);
    play_membership_kind(fixture, MEMBERSHIP_EVENT_TIMER_FIRED);
    play_expect(fixture, "signal_workers 15");
    assert_string_equal(play_knowledge(fixture)->trouble, "the store is gone (node 0)");
}

TEST_OF(play, a_worker_that_fails_when_the_store_is_lost_is_not_ended_by_a_signal,
    open_running(&fixture, 1), play_close) {
    play_fixed_kind(fixture, ROUND_EVENT_CONNECTION_LOST);
    play_expect(fixture, STORE_GONE);
    play_exit(fixture, 0, 1);
    assert_int_equal(node_machine_workers(fixture->node)->failure_count, 1);
    assert_false(node_machine_workers(fixture->node)->failures[0].is_from_our_signal);
    assert_true(play_knowledge(fixture)->is_cut_off);
}

/* The store is to have an answer for the last words: a node that ends before they are on their way
 * leaves the others to their timeouts. */

TEST_OF(play, a_node_that_cannot_follow_says_so_before_it_ends, open_in_barrier(&fixture, 0),
    play_close) {
    play_decide(fixture, ROUND_KEY_END, 0, "restart");
    play_expect(fixture,
        "get end/0; note another node restarts its workers: joining attempt 1; "
        "announce_failure; finish peer_failed; " WRITE_FAILURE("failed 1") "; get end/0; flush "
                                                                           "seconds=1");
}
