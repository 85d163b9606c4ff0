/* SPDX-License-Identifier: BSD-3-Clause */
/* Of nodes that come and go; how they end, and settle after a signal, is in files of their own. */
#include "unit.h"

#include "core/node/node_membership.h"
#include "node_fixture.h"

/* Worlds. */

TEST(a_world_is_entered_before_the_node_is_placed) {
    CLEARED_BY(desk_clear) struct desk desk = desk_joined();
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
}

TEST(a_world_that_was_held_begins_when_it_is_released) {
    CLEARED_BY(desk_clear) struct desk desk = desk_joining();
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
}

TEST(a_world_that_ends_before_the_node_is_placed_is_followed_by_another) {
    CLEARED_BY(desk_clear) struct desk desk = desk_joining();
    take_world(&desk, 4, "", WORLD_4);
    take_told(&desk, RENDEZVOUS_EFFECT_ROUND_OVER, "a node came",
        "round: abandon; cancel_roll; rendezvous: join_asked");
    expect_stage(&desk, MEMBERSHIP_JOINING);
}

TEST(a_finished_node_that_is_cut_off_is_released) {
    CLEARED_BY(desk_clear) struct desk desk = desk_in_barrier();
    take_cut_off(&desk, "round: abandon; cancel_roll; agent: barrier_failed");
    expect_stage(&desk, MEMBERSHIP_IDLE);
}

TEST(a_node_that_has_ended_its_round_itself_is_not_told_so) {
    CLEARED_BY(desk_clear) struct desk desk = desk_joined();
    take_kind(&desk, MEMBERSHIP_EVENT_RESTART_ASKED,
        "round: abandon; rendezvous: restart_asked node me cannot go on");
    take_told(&desk, RENDEZVOUS_EFFECT_ROUND_OVER, "a node came", "round: abandon; cancel_roll");
    expect_stage(&desk, MEMBERSHIP_IDLE);
}

/* The exit barrier. */

TEST(a_host_that_is_done_keeps_the_store_until_nobody_needs_it) {
    CLEARED_BY(desk_clear) struct desk desk = desk_joined();
    take_hosting(&desk, 0);
    take_kind(
        &desk, MEMBERSHIP_EVENT_BARRIER_ASKED, "round: barrier_asked; rendezvous: done_asked");
    take_round(&desk, ROUND_EFFECT_BARRIER_LATE, "1 of 2 nodes had come",
        "note 1 of 2 nodes had come; this node hosts the job's store, and keeps it until they are "
        "done");
    expect_stage(&desk, MEMBERSHIP_BARRIER);
    take_round(&desk, ROUND_EFFECT_BARRIER_PASSED, NULL, "agent: barrier_passed");
}

/* LINGER is told when nobody else is connected. */
#define STAYS_UNTIL_ALONE                                                                          \
    "note 1 of 2 nodes had come; this node hosts the job's store, and keeps it until they are "    \
    "done; linger seconds=9.22337e+09"

TEST(where_losses_are_ignored_a_host_that_is_done_awaits_no_lost_node) {
    CLEARED_BY(desk_clear) struct desk desk = desk_joined();
    desk.membership.settings.ignores_losses = true;
    take_hosting(&desk, 0);
    take_kind(
        &desk, MEMBERSHIP_EVENT_BARRIER_ASKED, "round: barrier_asked; rendezvous: done_asked");
    take_round(&desk, ROUND_EFFECT_BARRIER_LATE, "1 of 2 nodes had come", STAYS_UNTIL_ALONE);
    take_kind(&desk, MEMBERSHIP_EVENT_LEFT, "agent: barrier_failed");
    take_kind(&desk, MEMBERSHIP_EVENT_SUCCESS_ASKED, "");
    take_kind(&desk, MEMBERSHIP_EVENT_END_ASKED, "disconnect; linger seconds=30");
    take_kind(&desk, MEMBERSHIP_EVENT_LEFT, "settled");
}

/* The others pass the barrier, too, and may be gone. */
TEST(who_is_done_after_the_record_was_closed_awaits_nobody) {
    for (int is_host = 0; is_host < 2; is_host++) {
        CLEARED_BY(desk_clear) struct desk desk = desk_joined();
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
    }
}

TEST(a_host_that_is_done_awaits_no_lost_node_of_torchruns) {
    struct rendezvous_node nodes[] = {
        {.identity = identity_of("me"), .is_participant = true},
        {.identity = {.address = "theirs", .pid = 7}, .is_participant = true},
    };
    struct rendezvous_state with_torchrun = {
        .round = 4, .is_complete = true, .nodes = nodes, .count = 2};
    CLEARED_BY(desk_clear) struct desk desk = desk_joining();
    take_world_of(&desk, &with_torchrun, WORLD_4);
    take_placed(&desk, 4, 0, "rendezvous: placed; agent: joined ticket=1 restarts=0 nodes=2");
    take_hosting(&desk, 0);
    take_kind(
        &desk, MEMBERSHIP_EVENT_BARRIER_ASKED, "round: barrier_asked; rendezvous: done_asked");
    take_round(&desk, ROUND_EFFECT_BARRIER_LATE, "1 of 2 nodes had come", STAYS_UNTIL_ALONE);
    take_kind(&desk, MEMBERSHIP_EVENT_LEFT, "agent: barrier_failed");
}

/* Failures here. */

TEST(a_failure_that_stands_is_told_and_is_the_last_word) {
    CLEARED_BY(desk_clear) struct desk desk = desk_joined();
    take_kind(&desk, MEMBERSHIP_EVENT_DOUBT_ASKED,
        "round: abandon; rendezvous: failure_asked node me cannot go on");
    take_kind(&desk, MEMBERSHIP_EVENT_FAILURE_STANDS, "agent: failure_stands");
    take_kind(&desk, MEMBERSHIP_EVENT_END_ASKED, "");
    take_kind(&desk, MEMBERSHIP_EVENT_SETTLED, "disconnect; settled");
}

TEST(who_found_no_way_in_has_nothing_to_say_about_the_job_of_the_others) {
    CLEARED_BY(desk_clear) struct desk desk = desk_joining();
    take_told(&desk, RENDEZVOUS_EFFECT_FAILED, "nobody came", "agent: join_failed ticket=1");
    struct failure_account account = account_of("me");
    take_account(
        &desk, MEMBERSHIP_EVENT_FAILURE_ASKED, &account, "round: abandon; rendezvous: leave_asked");
}

/* Failures elsewhere. */

TEST(a_failed_job_is_told_after_its_root_cause_was_looked_for) {
    struct failure_account account = account_of(OTHER);
    CLEARED_BY(desk_clear) struct desk desk = desk_joined();
    take_told(&desk, RENDEZVOUS_EFFECT_CLOSED, "worker 5 failed", "look_for_root_cause round=4");
    take_account(&desk, MEMBERSHIP_EVENT_ROOT_CAUSE_LEARNT, &account, "");
    take_kind(&desk, MEMBERSHIP_EVENT_ROOT_CAUSE_LOOKED, "agent: peer_failed");
    expect_stage(&desk, MEMBERSHIP_IDLE);
    assert_string_equal(knowledge_of(&desk)->trouble, "worker 5 failed");
    assert_true(knowledge_of(&desk)->has_root_cause);
    assert_string_equal(knowledge_of(&desk)->root_cause.host, "host2");
    take_kind(&desk, MEMBERSHIP_EVENT_ROOT_CAUSE_LOOKED, ""); /* it is told once */
}

TEST(what_this_node_has_written_itself_is_no_news_to_it) {
    struct failure_account mine = account_of(ME);
    struct failure_account nameless = account_of(NULL);
    CLEARED_BY(desk_clear) struct desk desk = desk_joined();
    take_account(&desk, MEMBERSHIP_EVENT_ROOT_CAUSE_LEARNT, &mine, "");
    assert_false(knowledge_of(&desk)->has_root_cause);
    take_account(&desk, MEMBERSHIP_EVENT_ROOT_CAUSE_LEARNT, &nameless, "");
    assert_true(knowledge_of(&desk)->has_root_cause);
}

TEST(a_root_cause_elsewhere_is_kept_until_the_next_round) {
    struct failure_account account = account_of(OTHER);
    CLEARED_BY(desk_clear) struct desk desk = desk_joined();
    take_account(&desk, MEMBERSHIP_EVENT_ROOT_CAUSE_LEARNT, &account, "");
    take_join(&desk, 2, 1, "rendezvous: join_asked");
    take_world(&desk, 4, "", WORLD_4);
    assert_true(knowledge_of(&desk)->has_root_cause);
    take_placed(&desk, 4, 1, "rendezvous: placed; agent: joined ticket=2 restarts=1 nodes=2");
    assert_false(knowledge_of(&desk)->has_root_cause);
    assert_null(knowledge_of(&desk)->root_cause.host);
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
    CLEARED_BY(desk_clear) struct desk desk = desk_joining();
    take_awaited(&desk, "note still no connection to the job's store at host:29400, 5 s after it "
                        "was lost; this node "
                        "gives up in 25 s at the latest (--host-timeout)");
    take_told(&desk, RENDEZVOUS_EFFECT_FAILED, "no connection", "agent: join_failed ticket=1");
    take_awaited(&desk, ""); /* nobody waits any more */
}

TEST(a_lost_rendezvous_fails_the_join_or_is_a_failed_peer) {
    CLEARED_BY(desk_clear) struct desk desk = desk_joining();
    take_told(&desk, RENDEZVOUS_EFFECT_FAILED, "no connection", "agent: join_failed ticket=1");
    take_told(&desk, RENDEZVOUS_EFFECT_FAILED, "no connection", ""); /* nobody waits any more */
    expect_stage(&desk, MEMBERSHIP_GIVEN_UP);
    desk_clear(&desk);
    desk = desk_joined();
    take_told(&desk, RENDEZVOUS_EFFECT_FAILED, "no connection", "agent: peer_failed");
    assert_string_equal(knowledge_of(&desk)->trouble, "no connection");
}

/* Jobs that end well without this node. */

TEST(a_spare_ends_well_with_the_job) {
    struct rendezvous_effect closed = {
        .kind = RENDEZVOUS_EFFECT_CLOSED, .told = {.reason = "", .is_spare = true}};
    CLEARED_BY(desk_clear) struct desk desk = desk_joining();
    take(&desk,
        (struct membership_event){
            .kind = MEMBERSHIP_EVENT_CLOSED, .rendezvous = {.effect = &closed}},
        "note the job ended well without this node: its program never ran here; agent: job_over");
    expect_stage(&desk, MEMBERSHIP_GIVEN_UP);
}

TEST(who_waited_beside_a_job_of_others_has_failed_when_that_is_over) {
    struct rendezvous_effect closed = {
        .kind = RENDEZVOUS_EFFECT_CLOSED, .told = {.reason = "", .is_spare = true}};
    struct membership_event over = {
        .kind = MEMBERSHIP_EVENT_CLOSED, .rendezvous = {.effect = &closed}};
    struct membership_event misplaced = {
        .kind = MEMBERSHIP_EVENT_MISPLACED, .reason = "that job runs another program"};
    CLEARED_BY(desk_clear) struct desk desk = desk_joining();
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
}

TEST(who_comes_too_late_is_told_to_name_a_new_job) {
    CLEARED_BY(desk_clear) struct desk desk = desk_joining();
    take_told(&desk, RENDEZVOUS_EFFECT_CLOSED, "", "agent: join_failed ticket=1");
    assert_string_equal(knowledge_of(&desk)->trouble,
        "job 'job' at host:29400 is over: its record is closed; a new job needs another --rdzv-id");
}

/* As when a torchrun node has failed for good, which closes the record and says nothing. */
TEST(a_node_of_a_closed_job_is_told_that_it_cannot_go_on) {
    CLEARED_BY(desk_clear) struct desk desk = desk_joined();
    take_join(&desk, 2, 1, "rendezvous: join_asked");
    take_told(&desk, RENDEZVOUS_EFFECT_CLOSED, "", "agent: join_failed ticket=2");
    assert_string_equal(knowledge_of(&desk)->trouble,
        "job 'job' at host:29400 is over: its record is closed; another node has ended, and "
        "workers cannot be started again");
}

/* Of a world that is over because another node was told to end by a signal,
 * which may be on its way to this node, too. */

#define ROUND_OVER "note joining the job's next round: a node has left; agent: round_over"

static struct desk joined_desk(int settling_seconds) {
    struct desk desk = desk_of(MEMBERSHIP_CHANGING);
    desk.membership.settings.settling_time = duration_from_seconds(settling_seconds);
    take_join(&desk, 1, 0, "rendezvous: join_asked");
    take_world(&desk, 4, "",
        "note round 4 of job 'job': this node is rank 0 of 2 nodes; round: begin 4 rank=0 of 2");
    take_placed(&desk, 4, 0, "rendezvous: placed; agent: joined ticket=1 restarts=0 nodes=2");
    return desk;
}

/* 5 s after the clock's beginning, another node has left by SIGINT, where a node that leaves is not
 * waited for when enough are left; they are if `is_next_whole`. */
static void take_leaving(struct desk *desk, bool is_next_whole, const char *expected) {
    struct rendezvous_effect effect = {.kind = RENDEZVOUS_EFFECT_ROUND_OVER,
        .told = {.reason = "a node has left", .is_next_whole = is_next_whole, .signal = 2}};
    desk->membership.settings.is_hasty = true;
    take(desk,
        (struct membership_event){.kind = MEMBERSHIP_EVENT_WORLD_OVER,
            .now = {.nanoseconds = INT64_C(5000000000)},
            .rendezvous = {.effect = &effect}},
        expected);
    expect_stage(desk, MEMBERSHIP_SETTLING);
}

static struct desk hasty_desk(void) {
    struct desk desk = joined_desk(2);
    take_leaving(&desk, true,
        "round: abandon; cancel_roll; look_for_root_cause round=4; " ROUND_OVER
        " signal=2; arm_timer at=5.025");
    return desk;
}

/* 5 s after the clock's beginning, another node has left by SIGINT. */
static struct desk settling_desk(void) {
    struct desk desk = joined_desk(2);
    struct instant now = {.nanoseconds = INT64_C(5000000000)};
    take_signalled(&desk, RENDEZVOUS_EFFECT_ROUND_OVER, 2, now,
        "round: abandon; cancel_roll; note another node was told to end by SIGINT, which may be on "
        "its way to this node, too: the workers here run on for 2 s (--settling-time); "
        "arm_timer at=7.000");
    expect_stage(&desk, MEMBERSHIP_SETTLING);
    return desk;
}

TEST(a_world_that_is_over_without_a_signal_is_left_at_once) {
    CLEARED_BY(desk_clear) struct desk desk = joined_desk(2);
    take_told(&desk, RENDEZVOUS_EFFECT_ROUND_OVER, "a node has left",
        "round: abandon; cancel_roll; look_for_root_cause round=4; " ROUND_OVER);
    take_kind(&desk, MEMBERSHIP_EVENT_TIMER_FIRED, "");
    expect_stage(&desk, MEMBERSHIP_IDLE);
}

TEST(without_a_settling_time_a_signal_makes_no_difference) {
    CLEARED_BY(desk_clear) struct desk desk = joined_desk(0);
    take_signalled(&desk, RENDEZVOUS_EFFECT_ROUND_OVER, 2, (struct instant){0},
        "round: abandon; cancel_roll; look_for_root_cause round=4; " ROUND_OVER);
    expect_stage(&desk, MEMBERSHIP_IDLE);
}

TEST(workers_that_are_done_meanwhile_wait_for_the_next_world) {
    CLEARED_BY(desk_clear) struct desk desk = settling_desk();
    take_kind(&desk, MEMBERSHIP_EVENT_BARRIER_ASKED, "");
    take_kind(&desk, MEMBERSHIP_EVENT_TIMER_FIRED,
        "look_for_root_cause round=4; " ROUND_OVER " signal=2");
}

/* Workers that miss those of the other node fail: the world's end is to blame, and costs nothing.
 */
TEST(workers_that_fail_meanwhile_are_not_announced) {
    struct failure_account account = account_of(ME);
    CLEARED_BY(desk_clear) struct desk desk = settling_desk();
    take_account(&desk, MEMBERSHIP_EVENT_RESTART_ASKED, &account, "");
    take_kind(&desk, MEMBERSHIP_EVENT_TIMER_FIRED, "");
    expect_stage(&desk, MEMBERSHIP_IDLE);
    take_join(&desk, 2, 1, "rendezvous: join_asked");
    desk_clear(&desk);
    desk = settling_desk();
    take_account(&desk, MEMBERSHIP_EVENT_DOUBT_ASKED, &account, "agent: round_over");
    take_kind(&desk, MEMBERSHIP_EVENT_TIMER_FIRED, "");
}

TEST(a_job_that_fails_meanwhile_is_told_as_the_agent_waits) {
    CLEARED_BY(desk_clear) struct desk desk = settling_desk();
    take_signalled(
        &desk, RENDEZVOUS_EFFECT_CLOSED, 15, (struct instant){0}, "look_for_root_cause round=4");
    take_kind(&desk, MEMBERSHIP_EVENT_ROOT_CAUSE_LOOKED, "agent: peer_failed signal=15");
    take_kind(&desk, MEMBERSHIP_EVENT_TIMER_FIRED, "");
    desk_clear(&desk);
    desk = settling_desk();
    take_kind(&desk, MEMBERSHIP_EVENT_RESTART_ASKED, "");
    take_join(&desk, 2, 1, "");
    take_told(&desk, RENDEZVOUS_EFFECT_FAILED, "no connection", "agent: join_failed ticket=2");
    take_kind(&desk, MEMBERSHIP_EVENT_TIMER_FIRED, "");
    expect_stage(&desk, MEMBERSHIP_GIVEN_UP);
}

/* Its workers are stopped by that signal meanwhile, so they get it once. */
TEST(where_enough_nodes_are_left_they_go_on_after_a_moment) {
    CLEARED_BY(desk_clear) struct desk desk = hasty_desk();
    take_join(&desk, 2, 0, "");
    take_kind(&desk, MEMBERSHIP_EVENT_TIMER_FIRED, "rendezvous: join_asked");
    expect_stage(&desk, MEMBERSHIP_JOINING);
    desk_clear(&desk);
    desk = hasty_desk();
    take_kind(&desk, MEMBERSHIP_EVENT_TIMER_FIRED, "");
    expect_stage(&desk, MEMBERSHIP_IDLE);
    take_join(&desk, 2, 0, "rendezvous: join_asked");
}

TEST(in_that_moment_the_same_signal_ends_this_node) {
    CLEARED_BY(desk_clear) struct desk desk = hasty_desk();
    take_kind(&desk, MEMBERSHIP_EVENT_LEAVE_ASKED, "round: abandon; rendezvous: leave_asked");
    take_kind(&desk, MEMBERSHIP_EVENT_TIMER_FIRED, "");
}

TEST(where_too_few_nodes_are_left_they_settle) {
    CLEARED_BY(desk_clear) struct desk desk = joined_desk(2);
    take_leaving(&desk, false,
        "round: abandon; cancel_roll; note another node was told to end by SIGINT, which may be on "
        "its way to this node, too: the workers here run on for 2 s (--settling-time); "
        "arm_timer at=7.000");
}

/* Of membership_changing: how a node ends. */

TEST(the_host_of_the_store_lingers_for_the_others) {
    CLEARED_BY(desk_clear) struct desk desk = desk_in_barrier();
    take_hosting(&desk, 0);
    take_round(&desk, ROUND_EFFECT_BARRIER_PASSED, NULL, "agent: barrier_passed");
    take_kind(&desk, MEMBERSHIP_EVENT_SUCCESS_ASKED, "rendezvous: close_asked");
    take_kind(&desk, MEMBERSHIP_EVENT_END_ASKED, ""); /* the last word is not said yet */
    take_kind(&desk, MEMBERSHIP_EVENT_SETTLED, "disconnect; linger seconds=30");
    take_kind(&desk, MEMBERSHIP_EVENT_SETTLED, ""); /* the end has begun */
    take_kind(&desk, MEMBERSHIP_EVENT_LEFT, "settled");
}

TEST(a_host_whose_job_has_failed_does_not_stay_for_long) {
    CLEARED_BY(desk_clear) struct desk desk = desk_joined();
    take_hosting(&desk, 0);
    take_kind(&desk, MEMBERSHIP_EVENT_FAILURE_ASKED,
        "round: abandon; rendezvous: close_asked node me cannot go on");
    take_kind(&desk, MEMBERSHIP_EVENT_SETTLED, "");
    take_kind(&desk, MEMBERSHIP_EVENT_END_ASKED, "disconnect; linger seconds=5");
    desk_clear(&desk);
    desk = desk_joined();
    take_hosting(&desk, 0);
    take_told(&desk, RENDEZVOUS_EFFECT_CLOSED, "worker 5 failed", "look_for_root_cause round=4");
    take_kind(&desk, MEMBERSHIP_EVENT_ROOT_CAUSE_LOOKED, "agent: peer_failed");
    take_kind(&desk, MEMBERSHIP_EVENT_END_ASKED, "disconnect; linger seconds=5");
    desk_clear(&desk);
    desk = desk_joined();
    take_hosting(&desk, 0);
    take_kind(&desk, MEMBERSHIP_EVENT_FAILURE_STANDS, "agent: failure_stands");
    take_kind(&desk, MEMBERSHIP_EVENT_SETTLED, "");
    take_kind(&desk, MEMBERSHIP_EVENT_END_ASKED, "disconnect; linger seconds=5");
}

#define NOBODY_FOLLOWS "; no other node can take its place (with --rdzv-backend dir one does)"

TEST(a_host_that_leaves_says_so_and_does_not_stay_for_long) {
    CLEARED_BY(desk_clear) struct desk desk = desk_joined();
    take_hosting(&desk, 0);
    take_kind(&desk, MEMBERSHIP_EVENT_LEAVE_ASKED,
        "round: abandon; note node me, which hosts the job's store, has left" NOBODY_FOLLOWS
        "; rendezvous: close_asked node me, which hosts the job's store, has left" NOBODY_FOLLOWS);
    take_kind(&desk, MEMBERSHIP_EVENT_END_ASKED, "");
    take_kind(&desk, MEMBERSHIP_EVENT_SETTLED, "disconnect; linger seconds=1");
}

/* It stays connected, since it commits the round in which the others go on. */
TEST(a_host_whom_another_node_follows_hands_its_store_over) {
    CLEARED_BY(desk_clear) struct desk desk = desk_joined();
    desk.membership.settings.has_succession = true;
    take_hosting(&desk, 0);
    take_kind(&desk, MEMBERSHIP_EVENT_LEAVE_ASKED, "round: abandon; rendezvous: leave_asked");
    take_kind(&desk, MEMBERSHIP_EVENT_END_ASKED, "");
    take_kind(&desk, MEMBERSHIP_EVENT_SETTLED, "linger seconds=0");
    take_kind(&desk, MEMBERSHIP_EVENT_LEFT, "settled");
}

TEST(a_host_that_found_no_way_in_does_not_stay_for_long) {
    CLEARED_BY(desk_clear) struct desk desk = desk_joining();
    take_hosting(&desk, 0);
    take_world(&desk, 4, "", WORLD_4);
    take_round(
        &desk, ROUND_EFFECT_JOIN_FAILED, "node 1 did not come", "agent: join_failed ticket=1");
    take_kind(&desk, MEMBERSHIP_EVENT_END_ASKED, "disconnect; linger seconds=1");
}
