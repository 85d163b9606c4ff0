/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of a node of a job whose nodes come and go: rank 0 of two, unless it is said. */
#include "unit.h"

#include "node_play.h"

#define WORLD_1                                                                                    \
    "note round 1 of job 'job': this node is rank 0 of 2 nodes; set_role_info 1/role_info/0; "     \
    "open_worker_store fresh; wait 1/role_infos/2; publish 1/publication me:29600 of " ME "; "     \
    "get 1/role_infos/2; set_assignments 1/assigned_ranks/0 of 2; start_workers attempt=0"
#define WORLD_2                                                                                    \
    "note round 2 of job 'job': this node is rank 0 of 2 nodes; a node came; "                     \
    "set_role_info 2/role_info/0; open_worker_store fresh; "                                       \
    "wait 2/role_infos/2; publish 2/publication me:29600 of " ME

static void open_running(struct play *play, int max_restarts, bool is_host) {
    play_open(play, MEMBERSHIP_CHANGING, max_restarts);
    play_join_changing(play, is_host);
    play_forget(play);
}

static void open_in_barrier(struct play *play, bool is_host) {
    open_running(play, 0, is_host);
    play_finish_workers(play);
    assert_int_equal(play_phase(play), AGENT_LEAVING);
    play_forget(play);
}

/* The same two nodes begin another round. */
static void begin_round_2(struct play *play) {
    play_write_round(play, 2, "ma");
    strcpy(play->record.reason, "a node came");
}

TEST_OF(play, a_node_joins_works_and_leaves_with_the_others,
    play_open(&fixture, MEMBERSHIP_CHANGING, 0), play_close) {
    play_join_changing(fixture, true);
    play_expect(fixture, "connect 600.000; " WORLD_1);
    play_finish_workers(fixture);
    play_expect(fixture,
        "signal_workers 15; add 1/num_members 1; wait 1/last_member; write quietly "
        "round 1 complete [" ME ":0 " OTHER ":1] wait [] spare [] draining");
    play_waited(fixture);
    play_expect(fixture, "finish succeeded; write round 1 complete [" ME ":0 " OTHER
                         ":1] wait [] spare [] closed draining; disconnect; linger seconds=30");
    play_membership_kind(fixture, MEMBERSHIP_EVENT_LEFT);
    play_expect(fixture, "settled");
}

/* A node that makes standby workers ready before it joins. */

static void tell_standby(struct play *play, struct standby_event event) {
    play_post(play, (struct node_event){.part = NODE_STANDBY, .standby = event});
}

TEST_OF(play, a_new_node_joins_when_its_standby_workers_are_ready,
    play_open(&fixture, MEMBERSHIP_CHANGING, 1), play_close) {
    fixture->settings.standby = (struct standby_settings){
        .is_wanted = true, .worker_count = 1, .after = duration_from_seconds(2)};
    fixture->settings.rendezvous.warming_patience = duration_from_seconds(30);
    node_machine_free(fixture->node);
    fixture->node = node_machine_new(&fixture->settings);
    play_write_round(fixture, 1, "a");
    play_agent_kind(fixture, AGENT_EVENT_START);
    play_connect(fixture, false);
    play_expect(fixture, "connect 600.000; warm 30.000");
    tell_standby(
        fixture, (struct standby_event){.kind = STANDBY_EVENT_INVITED, .records.modules = 7});
    play_expect(fixture, "warm rank=0 alone");
    tell_standby(fixture,
        (struct standby_event){.kind = STANDBY_EVENT_SPARE_READY, .ready = {0, 100, false}});
    play_expect(fixture,
        "tell_ready 1/1 bytes=100; write round 1 complete [" OTHER ":0] wait [" ME "] spare []");
}

/* Rounds. */

TEST_OF(play, a_round_that_ends_is_followed_by_the_next_at_no_cost,
    open_running(&fixture, 0, false), play_close) {
    begin_round_2(fixture);
    play_change(fixture);
    play_expect(fixture, "cancel_roll; "
                         "note joining the job's next round: a node came; signal_workers 15");
    play_agent_kind(fixture, AGENT_EVENT_ALL_GONE);
    play_expect(fixture, WORLD_2);
    play_waited(fixture);
    play_expect(fixture,
        "get 2/role_infos/2; set_assignments 2/assigned_ranks/0 of 2; clear 0 to 0 of 2; "
        "start_workers attempt=0");
    assert_int_equal(play_knowledge(fixture)->placement.round, 2);
}

/* One step tells the membership twice, and each word of it is there to be read. */
TEST_OF(play, a_host_cannot_do_without_its_store, open_running(&fixture, 0, true), play_close) {
    play_cut_off(fixture);
    play_expect(fixture, "cancel_roll; look_for_root_cause round=1; "
                         "note joining the job's next round: cut off; signal_workers 15");
    assert_string_equal(play_knowledge(fixture)->trouble, "cut off");
    play_agent_kind(fixture, AGENT_EVENT_ALL_GONE);
    play_expect(fixture, "finish peer_failed; disconnect; linger seconds=1");
}

TEST(a_restart_here_is_written_down_with_the_worker_to_blame) {
    struct failure_account account = account_of(ME);
    struct play play;
    open_running(&play, 1, false);
    play.blamed = &account;
    play_exit(&play, 0, 3);
    play_expect(&play,
        "announce_restart attempt=1; signal_workers 15; publish_root_cause round=1 " FAILED_WORKER
        "; write round 2 complete [" ME ":1 " OTHER
        ":0] wait [] spare [] restarts 1 charged because " FAILED_WORKER);
    play_agent_kind(&play, AGENT_EVENT_ALL_GONE);
    play_expect(&play, "note round 2 of job 'job': this node is rank 1 of 2 nodes; " FAILED_WORKER
                       "; set_role_info 2/role_info/1; wait 2/world/1");
    play_close(&play);
}

/* The exit barrier. */

TEST_OF(play, a_finished_node_is_called_back_when_another_fails, open_in_barrier(&fixture, false),
    play_close) {
    begin_round_2(fixture);
    fixture->record.restarts = 1;
    play_change(fixture);
    play_expect(fixture, "cancel_roll; look_for_root_cause round=1; "
                         "note joining the job's next round: a node came; cancel_wait; " WORLD_2);
}

TEST_OF(play, a_finished_node_that_is_cut_off_is_released, open_in_barrier(&fixture, false),
    play_close) {
    play_cut_off(fixture);
    play_expect(fixture, "cancel_roll; connect 30.000 or refused for 5.000; cancel_wait; finish "
                         "succeeded; disconnect; settled");
}

TEST_OF(play, who_waited_long_enough_leaves_the_rest_to_the_others,
    open_in_barrier(&fixture, false), play_close) {
    fixture->now = instant_after(fixture->now, duration_from_seconds(300));
    play_tell_round(fixture, (struct round_event){.kind = ROUND_EVENT_TIMER_FIRED, .round = 1});
    play_tell_round(fixture, (struct round_event){.kind = ROUND_EVENT_COUNTED,
                                 .round = 1,
                                 .key = {.kind = ROUND_KEY_NUM_MEMBERS},
                                 .count = 1});
    play_expect(fixture,
        "add 1/num_members 0; note 1 of 2 nodes had come to the exit barrier within "
        "300 s; finish succeeded; cancel_wait; disconnect; settled");
}

/* Failures. */

TEST(a_failure_here_ends_the_job_when_nobody_is_lost) {
    struct failure_account account = account_of(ME);
    struct play play;
    open_running(&play, 0, true);
    play.blamed = &account;
    play_exit(&play, 0, 3);
    play_expect(&play,
        "doubt_failure; signal_workers 15; publish_root_cause round=1 " FAILED_WORKER
        "; write round 1 complete [" ME ":0 " OTHER
        ":1] wait [] spare [] doubted; answer_roll round 1 rank 0; call_roll round 1 of 2");
    play_agent_kind(&play, AGENT_EVENT_ALL_GONE);
    play_tell_rendezvous(&play, (struct rendezvous_event){.kind = RENDEZVOUS_EVENT_ROLL_ANSWERED});
    play_expect(&play, "write round 1 complete [" ME ":0 " OTHER
                       ":1] wait [] spare [] closed failed doubted because " FAILED_WORKER
                       "; finish failed; disconnect; linger seconds=5");
    play_close(&play);
}

TEST(a_failure_elsewhere_is_reported_with_its_root_cause) {
    struct failure_account account = account_of(OTHER);
    struct play play;
    open_running(&play, 0, true);
    play.root_cause = &account;
    play_write_end(&play, "worker 5 failed");
    play_expect(&play, "look_for_root_cause round=1; signal_workers 15");
    assert_true(play_knowledge(&play)->has_root_cause);
    assert_string_equal(play_knowledge(&play)->trouble, "worker 5 failed");
    play_agent_kind(&play, AGENT_EVENT_ALL_GONE);
    play_expect(&play, "finish peer_failed; disconnect; linger seconds=5");
    play_close(&play);
}

/* Leaving. */

#define HOSTS_LEAVING                                                                              \
    "node me, which hosts the job's store, was told to end by SIGTERM; no other node can take "    \
    "its "                                                                                         \
    "place (with --rdzv-backend dir one does)"

TEST_OF(play, the_host_of_the_store_closes_the_job_when_it_leaves, open_running(&fixture, 0, true),
    play_close) {
    play_signal(fixture, 15);
    play_expect(fixture,
        "note " HOSTS_LEAVING "; signal_workers 15; write round 1 complete [" ME ":0 " OTHER
        ":1] wait [] spare [] closed failed signal 15 because " HOSTS_LEAVING);
    play_agent_kind(fixture, AGENT_EVENT_ALL_GONE);
    play_expect(fixture, "finish signalled=15; disconnect; linger seconds=1");
    play_membership_kind(fixture, MEMBERSHIP_EVENT_LEFT);
    play_expect(fixture, "settled");
}
