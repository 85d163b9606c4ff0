/* SPDX-License-Identifier: BSD-3-Clause */
/* Of nodes that come and go; how they end, and settle after a signal, is in files of their own. */
#include "unit.h"

#include "core/node/node_membership.h"
#include "node_fixture.h"

/* Worlds. */

TEST(a_world_is_entered_before_the_node_is_placed) {
    struct desk desk = desk_joined();
    const struct node_placement *placement = &knowledge_of(&desk)->placement;
    assert_string_equal(placement->run_id, "job");
    assert_string_equal(placement->node, ME);
    assert_string_equal(placement->master_address, "a");
    assert_int_equal(placement->master_port, 29600);
    assert_int_equal(placement->group_rank, 0);
    assert_int_equal(placement->group_world_size, 2);
    assert_int_equal(placement->local_world_size, 2);
    assert_int_equal(placement->ranks.world_size, 4);
    assert_int_equal(placement->round, 4);
    desk_clear(&desk);
}

TEST(a_world_tells_why_it_was_begun) {
    struct desk desk = desk_joining();
    take_world(&desk, 4, "a node has left",
        "note round 4 of job 'job': this node is rank 0 of 2 nodes; a node has left; "
        "round: begin 4 rank=0 of 2");
    desk_clear(&desk);
}

TEST(a_world_that_was_held_begins_when_it_is_released) {
    struct desk desk = desk_joining();
    struct rendezvous_state record = {.round = 4, .is_complete = true};
    struct rendezvous_effect world = {.kind = RENDEZVOUS_EFFECT_WORLD,
        .world = {.state = &record,
            .identity = identity_of("me"),
            .round = 4,
            .node_count = 2,
            .is_held = true}};
    take(&desk,
        (struct membership_event){.kind = MEMBERSHIP_EVENT_WORLD, .rendezvous = {.effect = &world}},
        WORLD_4 " held");
    struct round_effect opened = {
        .kind = ROUND_EFFECT_OPENED, .round = 4, .opened = {.address = "a", .port = 29600}};
    take(&desk,
        (struct membership_event){.kind = membership_event_of_round(opened.kind), .round = &opened},
        "rendezvous: opened round 4 at a port 29600");
    struct rendezvous_effect released = {.kind = RENDEZVOUS_EFFECT_RELEASED,
        .released = {
            .round = 4, .ranks = {0, 4, 0, 4}, .meeting = rendezvous_meeting_at(4, "a", 29600)}};
    take(&desk,
        (struct membership_event){
            .kind = membership_event_of_rendezvous(&released), .rendezvous = {.effect = &released}},
        "round: released 4 [0, 4, 0, 4] a:29600");
    expect_stage(&desk, MEMBERSHIP_JOINING);
    desk_clear(&desk);
}

TEST(restarts_of_the_job_are_those_the_round_tells) {
    struct desk desk = desk_joining();
    take_world(&desk, 4, "", WORLD_4);
    take_placed(&desk, 4, 3, "rendezvous: placed; agent: joined ticket=1 restarts=3 nodes=2");
    assert_int_equal(knowledge_of(&desk)->placement.attempt, 3);
    desk_clear(&desk);
}

TEST(a_placement_does_not_name_a_node_of_the_round_before) {
    struct desk desk = desk_joined();
    take_join(&desk, 2, 0, "rendezvous: join_asked");
    take_world(&desk, 4, "", WORLD_4);
    assert_null(knowledge_of(&desk)->placement.node);
    desk_clear(&desk);
}

TEST(a_round_that_finds_no_agreement_fails_the_join) {
    struct desk desk = desk_joining();
    take_world(&desk, 4, "", WORLD_4);
    take_round(
        &desk, ROUND_EFFECT_JOIN_FAILED, "node 1 did not come", "agent: join_failed ticket=1");
    assert_string_equal(knowledge_of(&desk)->trouble, "node 1 did not come");
    expect_stage(&desk, MEMBERSHIP_GIVEN_UP);
    desk_clear(&desk);
}

TEST(a_world_that_ends_before_the_node_is_placed_is_followed_by_another) {
    struct desk desk = desk_joining();
    take_world(&desk, 4, "", WORLD_4);
    take_told(&desk, RENDEZVOUS_EFFECT_ROUND_OVER, "a node came",
        "round: abandon; cancel_roll; rendezvous: join_asked");
    expect_stage(&desk, MEMBERSHIP_JOINING);
    desk_clear(&desk);
}

TEST(a_world_that_ends_stops_the_workers_and_may_have_a_root_cause) {
    struct desk desk = desk_joined();
    take_told(&desk, RENDEZVOUS_EFFECT_ROUND_OVER, "a node came",
        "round: abandon; cancel_roll; look_for_root_cause round=4; "
        "note joining the job's next round: a node came; agent: round_over");
    expect_stage(&desk, MEMBERSHIP_IDLE);
    take_kind(&desk, MEMBERSHIP_EVENT_ROOT_CAUSE_LOOKED, "");
    take_join(&desk, 2, 0, "rendezvous: join_asked");
    desk_clear(&desk);
}

TEST(a_finished_node_is_called_back_into_the_next_world) {
    struct desk desk = desk_in_barrier();
    take_told(&desk, RENDEZVOUS_EFFECT_ROUND_OVER, "worker 1 failed",
        "round: abandon; cancel_roll; look_for_root_cause round=4; "
        "note joining the job's next round: worker 1 failed; agent: round_over");
    expect_stage(&desk, MEMBERSHIP_IDLE);
    desk_clear(&desk);
}

TEST(a_finished_node_that_is_cut_off_is_released) {
    struct desk desk = desk_in_barrier();
    take_cut_off(&desk, "round: abandon; cancel_roll; agent: barrier_failed");
    expect_stage(&desk, MEMBERSHIP_IDLE);
    desk_clear(&desk);
}

TEST(a_node_that_is_cut_off_from_its_work_ends_its_round) {
    struct desk desk = desk_joined();
    take_cut_off(&desk, "round: abandon; cancel_roll; look_for_root_cause round=4; "
                        "note joining the job's next round: cut off; agent: round_over");
    desk_clear(&desk);
}

TEST(a_node_that_has_ended_its_round_itself_is_not_told_so) {
    struct desk desk = desk_joined();
    take_kind(&desk, MEMBERSHIP_EVENT_RESTART_ASKED,
        "round: abandon; rendezvous: restart_asked node me cannot go on");
    take_told(&desk, RENDEZVOUS_EFFECT_ROUND_OVER, "a node came", "round: abandon; cancel_roll");
    expect_stage(&desk, MEMBERSHIP_IDLE);
    desk_clear(&desk);
}

/* The exit barrier. */

TEST(nodes_that_are_done_close_the_record) {
    struct desk desk = desk_in_barrier();
    take_round(&desk, ROUND_EFFECT_BARRIER_PASSED, NULL, "agent: barrier_passed");
    expect_stage(&desk, MEMBERSHIP_IDLE);
    take_kind(&desk, MEMBERSHIP_EVENT_SUCCESS_ASKED, "rendezvous: close_asked");
    desk_clear(&desk);
}

TEST(who_has_not_waited_for_the_others_leaves_it_to_them_to_close_the_record) {
    struct desk desk = desk_in_barrier();
    take_round(&desk, ROUND_EFFECT_BARRIER_FAILED, "1 of 2 nodes had come",
        "note 1 of 2 nodes had come; agent: barrier_failed");
    take_kind(&desk, MEMBERSHIP_EVENT_SUCCESS_ASKED, "");
    desk_clear(&desk);
}

TEST(a_host_that_is_done_keeps_the_store_until_nobody_needs_it) {
    struct desk desk = desk_joined();
    take_hosting(&desk, 0);
    take_kind(
        &desk, MEMBERSHIP_EVENT_BARRIER_ASKED, "round: barrier_asked; rendezvous: done_asked");
    take_round(&desk, ROUND_EFFECT_BARRIER_LATE, "1 of 2 nodes had come",
        "note 1 of 2 nodes had come; this node hosts the job's store, and keeps it until they are "
        "done");
    expect_stage(&desk, MEMBERSHIP_BARRIER);
    take_round(&desk, ROUND_EFFECT_BARRIER_PASSED, NULL, "agent: barrier_passed");
    desk_clear(&desk);
}

/* LINGER is told when nobody else is connected. */
#define STAYS_UNTIL_ALONE                                                                          \
    "note 1 of 2 nodes had come; this node hosts the job's store, and keeps it until they are "    \
    "done; linger seconds=9.22337e+09"

TEST(where_losses_are_ignored_a_host_that_is_done_awaits_no_lost_node) {
    struct desk desk = desk_joined();
    desk.membership.settings.ignores_losses = true;
    take_hosting(&desk, 0);
    take_kind(
        &desk, MEMBERSHIP_EVENT_BARRIER_ASKED, "round: barrier_asked; rendezvous: done_asked");
    take_round(&desk, ROUND_EFFECT_BARRIER_LATE, "1 of 2 nodes had come", STAYS_UNTIL_ALONE);
    take_kind(&desk, MEMBERSHIP_EVENT_LEFT, "agent: barrier_failed");
    take_kind(&desk, MEMBERSHIP_EVENT_SUCCESS_ASKED, "");
    take_kind(&desk, MEMBERSHIP_EVENT_END_ASKED, "disconnect; linger seconds=30");
    take_kind(&desk, MEMBERSHIP_EVENT_LEFT, "settled");
    desk_clear(&desk);
}

/* The others pass the barrier, too, and may be gone. */
TEST(who_is_done_after_the_record_was_closed_awaits_nobody) {
    for (int is_host = 0; is_host < 2; is_host++) {
        struct desk desk = desk_joined();
        if (is_host) {
            take_hosting(&desk, 0);
        }
        take_told(&desk, RENDEZVOUS_EFFECT_CLOSED, "",
            "note the job's record was closed; workers here may finish, but not restart");
        take_kind(&desk, MEMBERSHIP_EVENT_BARRIER_ASKED,
            "round: barrier_asked; rendezvous: done_asked; agent: barrier_passed");
        take_kind(&desk, MEMBERSHIP_EVENT_SUCCESS_ASKED, "rendezvous: close_asked");
        take_kind(&desk, MEMBERSHIP_EVENT_END_ASKED, "");
        take_kind(&desk, MEMBERSHIP_EVENT_SETTLED,
            is_host ? "disconnect; linger seconds=9.22337e+09" : "disconnect; settled");
        desk_clear(&desk);
    }
}

TEST(a_host_that_is_done_awaits_no_lost_node_of_torchruns) {
    struct rendezvous_node nodes[] = {
        {.identity = identity_of("me"), .is_participant = true},
        {.identity = {.address = "theirs", .pid = 7}, .is_participant = true},
    };
    struct rendezvous_state with_torchrun = {
        .round = 4, .is_complete = true, .nodes = nodes, .count = 2};
    struct desk desk = desk_joining();
    take_world_of(&desk, &with_torchrun, WORLD_4);
    take_placed(&desk, 4, 0, "rendezvous: placed; agent: joined ticket=1 restarts=0 nodes=2");
    take_hosting(&desk, 0);
    take_kind(
        &desk, MEMBERSHIP_EVENT_BARRIER_ASKED, "round: barrier_asked; rendezvous: done_asked");
    take_round(&desk, ROUND_EFFECT_BARRIER_LATE, "1 of 2 nodes had come", STAYS_UNTIL_ALONE);
    take_kind(&desk, MEMBERSHIP_EVENT_LEFT, "agent: barrier_failed");
    desk_clear(&desk);
}

TEST(a_record_that_is_closed_well_ends_the_barrier_too) {
    struct desk desk = desk_in_barrier();
    take_told(&desk, RENDEZVOUS_EFFECT_CLOSED, "", "agent: barrier_passed");
    take_kind(&desk, MEMBERSHIP_EVENT_SUCCESS_ASKED, "rendezvous: close_asked");
    desk_clear(&desk);
}

TEST(a_barrier_that_ends_when_nobody_waits_in_it_is_no_news) {
    struct desk desk = desk_joined();
    take_round(&desk, ROUND_EFFECT_BARRIER_PASSED, NULL, "");
    take_round(&desk, ROUND_EFFECT_BARRIER_FAILED, "1 of 2 nodes had come", "");
    expect_stage(&desk, MEMBERSHIP_JOINED);
    desk_clear(&desk);
}

/* Failures here. */

TEST(who_failed_is_written_down_before_the_record_says_that_somebody_did) {
    struct failure_account account = account_of(ME);
    struct desk desk = desk_joined();
    take_account(&desk, MEMBERSHIP_EVENT_RESTART_ASKED, &account,
        "round: abandon; publish_root_cause round=4 " FAILED_WORKER
        "; rendezvous: restart_asked " FAILED_WORKER);
    expect_stage(&desk, MEMBERSHIP_IDLE);
    desk_clear(&desk);
    desk = desk_joined();
    take_account(&desk, MEMBERSHIP_EVENT_DOUBT_ASKED, &account,
        "round: abandon; publish_root_cause round=4 " FAILED_WORKER
        "; rendezvous: failure_asked " FAILED_WORKER);
    expect_stage(&desk, MEMBERSHIP_JOINED); /* until the failure stands, or is none of the job's */
    desk_clear(&desk);
    desk = desk_joined();
    take_account(&desk, MEMBERSHIP_EVENT_FAILURE_ASKED, &account,
        "round: abandon; publish_root_cause round=4 " FAILED_WORKER
        "; rendezvous: close_asked " FAILED_WORKER);
    desk_clear(&desk);
}

TEST(without_a_worker_to_blame_the_node_names_itself) {
    struct desk desk = desk_joined();
    take_kind(&desk, MEMBERSHIP_EVENT_DOUBT_ASKED,
        "round: abandon; rendezvous: failure_asked node me cannot go on");
    take_kind(&desk, MEMBERSHIP_EVENT_FAILURE_ASKED,
        "round: abandon; rendezvous: close_asked node me cannot go on");
    desk_clear(&desk);
}

TEST(a_failure_that_stands_is_told_and_is_the_last_word) {
    struct desk desk = desk_joined();
    take_kind(&desk, MEMBERSHIP_EVENT_DOUBT_ASKED,
        "round: abandon; rendezvous: failure_asked node me cannot go on");
    take_kind(&desk, MEMBERSHIP_EVENT_FAILURE_STANDS, "agent: failure_stands");
    take_kind(&desk, MEMBERSHIP_EVENT_END_ASKED, "");
    take_kind(&desk, MEMBERSHIP_EVENT_SETTLED, "disconnect; settled");
    desk_clear(&desk);
}

TEST(who_found_no_way_in_has_nothing_to_say_about_the_job_of_the_others) {
    struct desk desk = desk_joining();
    take_told(&desk, RENDEZVOUS_EFFECT_FAILED, "nobody came", "agent: join_failed ticket=1");
    struct failure_account account = account_of("me");
    take_account(
        &desk, MEMBERSHIP_EVENT_FAILURE_ASKED, &account, "round: abandon; rendezvous: leave_asked");
    desk_clear(&desk);
}

/* Failures elsewhere. */

TEST(a_failed_job_is_told_after_its_root_cause_was_looked_for) {
    struct failure_account account = account_of(OTHER);
    struct desk desk = desk_joined();
    take_told(&desk, RENDEZVOUS_EFFECT_CLOSED, "worker 5 failed", "look_for_root_cause round=4");
    take_account(&desk, MEMBERSHIP_EVENT_ROOT_CAUSE_LEARNT, &account, "");
    take_kind(&desk, MEMBERSHIP_EVENT_ROOT_CAUSE_LOOKED, "agent: peer_failed");
    expect_stage(&desk, MEMBERSHIP_IDLE);
    assert_string_equal(knowledge_of(&desk)->trouble, "worker 5 failed");
    assert_true(knowledge_of(&desk)->has_root_cause);
    assert_string_equal(knowledge_of(&desk)->root_cause.host, "host2");
    take_kind(&desk, MEMBERSHIP_EVENT_ROOT_CAUSE_LOOKED, ""); /* it is told once */
    desk_clear(&desk);
}

TEST(a_failed_job_is_told_without_a_root_cause_too) {
    struct desk desk = desk_in_barrier();
    take_told(&desk, RENDEZVOUS_EFFECT_CLOSED, "worker 5 failed", "look_for_root_cause round=4");
    take_told(&desk, RENDEZVOUS_EFFECT_CLOSED, "worker 6 failed", "look_for_root_cause round=4");
    take_kind(&desk, MEMBERSHIP_EVENT_ROOT_CAUSE_LOOKED, "agent: peer_failed");
    assert_string_equal(knowledge_of(&desk)->trouble, "worker 6 failed");
    assert_false(knowledge_of(&desk)->has_root_cause);
    desk_clear(&desk);
}

TEST(a_late_joiner_of_a_failed_job_is_told_so) {
    struct desk desk = desk_joining();
    take_told(&desk, RENDEZVOUS_EFFECT_CLOSED, "worker 5 failed", "look_for_root_cause round=0");
    take_kind(&desk, MEMBERSHIP_EVENT_ROOT_CAUSE_LOOKED, "agent: join_failed ticket=1");
    assert_string_equal(knowledge_of(&desk)->trouble, "worker 5 failed");
    desk_clear(&desk);
}

TEST(what_this_node_has_written_itself_is_no_news_to_it) {
    struct failure_account mine = account_of(ME);
    struct failure_account nameless = account_of(NULL);
    struct desk desk = desk_joined();
    take_account(&desk, MEMBERSHIP_EVENT_ROOT_CAUSE_LEARNT, &mine, "");
    assert_false(knowledge_of(&desk)->has_root_cause);
    take_account(&desk, MEMBERSHIP_EVENT_ROOT_CAUSE_LEARNT, &nameless, "");
    assert_true(knowledge_of(&desk)->has_root_cause);
    desk_clear(&desk);
}

TEST(a_root_cause_elsewhere_is_kept_until_the_next_round) {
    struct failure_account account = account_of(OTHER);
    struct desk desk = desk_joined();
    take_account(&desk, MEMBERSHIP_EVENT_ROOT_CAUSE_LEARNT, &account, "");
    take_join(&desk, 2, 1, "rendezvous: join_asked");
    take_world(&desk, 4, "", WORLD_4);
    assert_true(knowledge_of(&desk)->has_root_cause);
    take_placed(&desk, 4, 1, "rendezvous: placed; agent: joined ticket=2 restarts=1 nodes=2");
    assert_false(knowledge_of(&desk)->has_root_cause);
    assert_null(knowledge_of(&desk)->root_cause.host);
    desk_clear(&desk);
}

static void take_awaited(struct desk *desk, const char *expected) {
    struct rendezvous_effect effect = {.kind = RENDEZVOUS_EFFECT_STORE_AWAITED,
        .awaited = {duration_from_seconds(5), duration_from_seconds(25)}};
    take(desk,
        (struct membership_event){
            .kind = membership_event_of_rendezvous(&effect), .rendezvous = {.effect = &effect}},
        expected);
}

TEST(a_wait_for_a_lost_store_is_said) {
    struct desk desk = desk_joining();
    take_awaited(&desk, "note still no connection to the job's store at host:29400, 5 s after it "
                        "was lost; this node "
                        "gives up in 25 s at the latest (--host-timeout)");
    take_told(&desk, RENDEZVOUS_EFFECT_FAILED, "no connection", "agent: join_failed ticket=1");
    take_awaited(&desk, ""); /* nobody waits any more */
    desk_clear(&desk);
}

TEST(a_lost_rendezvous_fails_the_join_or_is_a_failed_peer) {
    struct desk desk = desk_joining();
    take_told(&desk, RENDEZVOUS_EFFECT_FAILED, "no connection", "agent: join_failed ticket=1");
    take_told(&desk, RENDEZVOUS_EFFECT_FAILED, "no connection", ""); /* nobody waits any more */
    expect_stage(&desk, MEMBERSHIP_GIVEN_UP);
    desk_clear(&desk);
    desk = desk_joined();
    take_told(&desk, RENDEZVOUS_EFFECT_FAILED, "no connection", "agent: peer_failed");
    assert_string_equal(knowledge_of(&desk)->trouble, "no connection");
    desk_clear(&desk);
}

/* Jobs that end well without this node. */

TEST(a_spare_ends_well_with_the_job) {
    struct rendezvous_effect closed = {
        .kind = RENDEZVOUS_EFFECT_CLOSED, .told = {.reason = "", .is_spare = true}};
    struct desk desk = desk_joining();
    take(&desk,
        (struct membership_event){
            .kind = MEMBERSHIP_EVENT_CLOSED, .rendezvous = {.effect = &closed}},
        "note the job ended well without this node: its program never ran here; agent: job_over");
    expect_stage(&desk, MEMBERSHIP_GIVEN_UP);
    desk_clear(&desk);
}

TEST(who_waited_beside_a_job_of_others_has_failed_when_that_is_over) {
    struct rendezvous_effect closed = {
        .kind = RENDEZVOUS_EFFECT_CLOSED, .told = {.reason = "", .is_spare = true}};
    struct membership_event over = {
        .kind = MEMBERSHIP_EVENT_CLOSED, .rendezvous = {.effect = &closed}};
    struct membership_event misplaced = {
        .kind = MEMBERSHIP_EVENT_MISPLACED, .reason = "that job runs another program"};
    struct desk desk = desk_joining();
    take(&desk, misplaced, "");
    take(&desk, over,
        "note job 'job' at host:29400 is over, and the program of this node never ran: that job "
        "runs another program; agent: join_failed ticket=1");
    expect_stage(&desk, MEMBERSHIP_GIVEN_UP);
    desk_clear(&desk);
    desk = desk_joining();
    take(&desk, misplaced, "");
    misplaced.reason = NULL;
    take(&desk, misplaced, "");
    take(&desk, over,
        "note the job ended well without this node: its program never ran here; agent: job_over");
    desk_clear(&desk);
}

TEST(who_comes_too_late_is_told_to_name_a_new_job) {
    struct desk desk = desk_joining();
    take_told(&desk, RENDEZVOUS_EFFECT_CLOSED, "", "agent: join_failed ticket=1");
    assert_string_equal(knowledge_of(&desk)->trouble,
        "job 'job' at host:29400 is over: its record is closed; a new job needs another --rdzv-id");
    desk_clear(&desk);
}

/* As when a torchrun node has failed for good, which closes the record and says nothing. */
TEST(a_node_of_a_closed_job_is_told_that_it_cannot_go_on) {
    struct desk desk = desk_joined();
    take_join(&desk, 2, 1, "rendezvous: join_asked");
    take_told(&desk, RENDEZVOUS_EFFECT_CLOSED, "", "agent: join_failed ticket=2");
    assert_string_equal(knowledge_of(&desk)->trouble,
        "job 'job' at host:29400 is over: its record is closed; another node has ended, and "
        "workers cannot be started again");
    desk_clear(&desk);
}

TEST(a_closed_record_lets_workers_finish) {
    struct desk desk = desk_joined();
    take_told(&desk, RENDEZVOUS_EFFECT_CLOSED, "",
        "note the job's record was closed; workers here may finish, but not restart");
    expect_stage(&desk, MEMBERSHIP_JOINED);
    desk_clear(&desk);
}
