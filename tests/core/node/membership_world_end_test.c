/* SPDX-License-Identifier: BSD-3-Clause */
/* Of a world that is over because another node was told to end by a signal,
 * which may be on its way to this node, too. */
#include "unit.h"

#include "core/node/node_membership.h"
#include "node_fixture.h"

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

TEST(nothing_is_started_anew_before_the_time_is_over) {
    CLEARED_BY(desk_clear) struct desk desk = settling_desk();
    take_kind(&desk, MEMBERSHIP_EVENT_TIMER_FIRED,
        "look_for_root_cause round=4; " ROUND_OVER " signal=2");
    expect_stage(&desk, MEMBERSHIP_IDLE);
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

/* The record is anybody's. */
TEST(a_signal_that_no_program_handles_is_not_believed) {
    CLEARED_BY(desk_clear) struct desk desk = joined_desk(2);
    take_signalled(&desk, RENDEZVOUS_EFFECT_ROUND_OVER, 9, (struct instant){0},
        "round: abandon; cancel_roll; look_for_root_cause round=4; " ROUND_OVER);
    desk_clear(&desk);
    desk = joined_desk(2);
    take_signalled(
        &desk, RENDEZVOUS_EFFECT_CLOSED, 9, (struct instant){0}, "look_for_root_cause round=4");
    take_kind(&desk, MEMBERSHIP_EVENT_ROOT_CAUSE_LOOKED, "agent: peer_failed");
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

TEST(a_join_waits_until_the_time_is_over) {
    CLEARED_BY(desk_clear) struct desk desk = settling_desk();
    take_kind(&desk, MEMBERSHIP_EVENT_RESTART_ASKED, "");
    take_join(&desk, 2, 1, "");
    expect_stage(&desk, MEMBERSHIP_SETTLING);
    take_kind(&desk, MEMBERSHIP_EVENT_TIMER_FIRED, "rendezvous: join_asked");
    expect_stage(&desk, MEMBERSHIP_JOINING);
    take_world(&desk, 4, "",
        "note round 4 of job 'job': this node is rank 0 of 2 nodes; round: begin 4 rank=0 of 2");
    take_placed(&desk, 4, 0, "rendezvous: placed; agent: joined ticket=2 restarts=0 nodes=2");
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

TEST(the_signal_that_comes_here_too_ends_this_node) {
    CLEARED_BY(desk_clear) struct desk desk = settling_desk();
    take_kind(&desk, MEMBERSHIP_EVENT_LEAVE_ASKED, "round: abandon; rendezvous: leave_asked");
    take_kind(&desk, MEMBERSHIP_EVENT_TIMER_FIRED, ""); /* no word of a round it does not join */
    take_kind(&desk, MEMBERSHIP_EVENT_SETTLED, "");
    take_kind(&desk, MEMBERSHIP_EVENT_END_ASKED, "disconnect; settled");
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

TEST(a_membership_may_end_while_it_settles) {
    struct desk desk = settling_desk();
    desk_clear(&desk); /* the sanitizer looks */
}
