/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/node/node_membership.h"
#include "node_fixture.h"

#define PARTING "linger seconds=9.22337e+09; arm_timer at=0.500"

static struct round_effect placed(int attempt) {
    return (struct round_effect){.kind = ROUND_EFFECT_JOINED,
        .joined = {.group_rank = 1,
            .node_count = 2,
            .ranks = {1, 3, 1, 3},
            .master_address = "127.0.0.1",
            .master_port = 29500,
            .restarts = attempt}};
}

static struct desk joined_desk(void) {
    struct desk desk = desk_of(MEMBERSHIP_FIXED);
    take_join(&desk, 1, 0, "round: begin rank=1 of 2 attempt=0");
    expect_stage(&desk, MEMBERSHIP_JOINING);
    take_fixed(&desk, placed(0), "agent: joined ticket=1 restarts=0 nodes=2");
    expect_stage(&desk, MEMBERSHIP_JOINED);
    return desk;
}

TEST(a_placed_node_knows_its_ranks_and_the_masters_store) {
    CLEARED_BY(desk_clear) struct desk desk = joined_desk();
    const struct node_placement *placement = &knowledge_of(&desk)->placement;
    assert_string_equal(placement->run_id, "job");
    assert_null(placement->node);
    assert_string_equal(placement->master_address, "127.0.0.1");
    assert_int_equal(placement->master_port, 29500);
    assert_int_equal(placement->group_rank, 1);
    assert_int_equal(placement->group_world_size, 2);
    assert_int_equal(placement->ranks.base_rank, 1);
    assert_int_equal(placement->ranks.world_size, 3);
}

TEST(the_round_is_told_where_the_workers_store_is) {
    struct membership_effects effects;
    struct membership_event join = {.kind = MEMBERSHIP_EVENT_JOIN_ASKED, .join = {1, 2}};
    CLEARED_BY(desk_clear) struct desk desk = desk_of(MEMBERSHIP_FIXED);
    node_membership_step(&desk.membership, &join, &effects);
    expect_effects(&effects, "round: begin rank=1 of 2 attempt=2");
    assert_string_equal(effects.items[0].round.begin.master_address, "127.0.0.1");
    assert_int_equal(effects.items[0].round.begin.master_port, 29500);
    take_hosting(&desk, 40001); /* then its own port, whatever was asked for */
    node_membership_step(&desk.membership, &join, &effects);
    assert_int_equal(effects.items[0].round.begin.master_port, 40001);
}

TEST(a_restart_anywhere_is_told_with_its_attempt) {
    CLEARED_BY(desk_clear) struct desk desk = joined_desk();
    take_fixed(&desk, (struct round_effect){.kind = ROUND_EFFECT_PEER_RESTART, .attempt = 1},
        "note another node restarts its workers: joining attempt 1; agent: peer_restart attempt=1");
    take_join(&desk, 2, 1, "round: begin rank=1 of 2 attempt=1");
    take_fixed(&desk, placed(1), "agent: joined ticket=2 restarts=1 nodes=2");
    assert_int_equal(knowledge_of(&desk)->placement.attempt, 1);
}

TEST(fixed_nodes_tell_each_other_that_they_failed_and_not_why) {
    CLEARED_BY(desk_clear) struct desk desk = joined_desk();
    struct failure_account account = account_of(NULL);
    take_account(&desk, MEMBERSHIP_EVENT_RESTART_ASKED, &account, "round: restart_asked");
    take_account(&desk, MEMBERSHIP_EVENT_FAILURE_ASKED, &account, "round: failure_asked");
    take_kind(&desk, MEMBERSHIP_EVENT_FAILURE_ASKED, "round: failure_asked");
}

TEST(a_job_of_fixed_nodes_cannot_go_on_without_one) {
    CLEARED_BY(desk_clear) struct desk desk = joined_desk();
    take_kind(&desk, MEMBERSHIP_EVENT_LEAVE_ASKED, "round: failure_asked");
}

TEST(a_node_that_is_ended_by_a_signal_tells_which) {
    CLEARED_BY(desk_clear) struct desk desk = joined_desk();
    struct membership_effects effects;
    struct membership_event leave = {.kind = MEMBERSHIP_EVENT_LEAVE_ASKED, .signal = 15};
    node_membership_step(&desk.membership, &leave, &effects);
    expect_effects(&effects, "round: failure_asked");
    assert_int_equal(effects.items[0].round.signal, 15);
}

TEST(a_success_needs_no_word_since_all_were_in_the_barrier) {
    CLEARED_BY(desk_clear) struct desk desk = joined_desk();
    take_kind(&desk, MEMBERSHIP_EVENT_BARRIER_ASKED, "round: barrier_asked");
    expect_stage(&desk, MEMBERSHIP_BARRIER);
    take_fixed(
        &desk, (struct round_effect){.kind = ROUND_EFFECT_BARRIER_PASSED}, "agent: barrier_passed");
    expect_stage(&desk, MEMBERSHIP_IDLE);
    take_kind(&desk, MEMBERSHIP_EVENT_SUCCESS_ASKED, "");
}

TEST(a_barrier_may_end_without_the_others) {
    CLEARED_BY(desk_clear) struct desk desk = joined_desk();
    take_kind(&desk, MEMBERSHIP_EVENT_BARRIER_ASKED, "round: barrier_asked");
    take_fixed(
        &desk, (struct round_effect){.kind = ROUND_EFFECT_BARRIER_FAILED}, "agent: barrier_failed");
}

TEST(a_rank_that_two_nodes_have_is_a_warning) {
    CLEARED_BY(desk_clear) struct desk desk = joined_desk();
    take_fixed(&desk,
        (struct round_effect){.kind = ROUND_EFFECT_RANK_DISPUTED, .reason = "rank 1 is another's"},
        "note rank 1 is another's");
}

#define STILL_WORKING                                                                              \
    "note other nodes still work; this node hosts the job's store, and keeps it until they are "   \
    "done; linger seconds=9.22337e+09"

static struct desk late_desk(void) {
    struct desk desk = joined_desk();
    take_kind(&desk, MEMBERSHIP_EVENT_BARRIER_ASKED, "round: barrier_asked");
    take_fixed(&desk,
        (struct round_effect){
            .kind = ROUND_EFFECT_BARRIER_LATE, .reason = "other nodes still work"},
        STILL_WORKING);
    expect_stage(&desk, MEMBERSHIP_BARRIER);
    return desk;
}

TEST(a_host_that_is_done_keeps_the_store_until_nobody_needs_it) {
    CLEARED_BY(desk_clear) struct desk desk = late_desk();
    take_kind(&desk, MEMBERSHIP_EVENT_LEFT, "agent: barrier_failed");
    take_kind(&desk, MEMBERSHIP_EVENT_END_ASKED, "flush seconds=1");
    take_kind(&desk, MEMBERSHIP_EVENT_LEFT, "settled");
}

TEST(a_host_that_was_late_passes_the_barrier_with_the_others) {
    CLEARED_BY(desk_clear) struct desk desk = late_desk();
    take_fixed(
        &desk, (struct round_effect){.kind = ROUND_EFFECT_BARRIER_PASSED}, "agent: barrier_passed");
    take_kind(&desk, MEMBERSHIP_EVENT_LEFT, ""); /* the agent does not wait for it yet */
    take_kind(&desk, MEMBERSHIP_EVENT_END_ASKED, "flush seconds=1");
    take_kind(&desk, MEMBERSHIP_EVENT_LEFT, "settled");
    take_kind(&desk, MEMBERSHIP_EVENT_LEFT, ""); /* it is said once */
}

static struct desk parting_desk(void) {
    struct desk desk = joined_desk();
    take_hosting(&desk, 29500);
    take_kind(&desk, MEMBERSHIP_EVENT_BARRIER_ASKED, "round: barrier_asked");
    take_fixed(
        &desk, (struct round_effect){.kind = ROUND_EFFECT_BARRIER_PASSED}, "agent: barrier_passed");
    take_kind(&desk, MEMBERSHIP_EVENT_END_ASKED, "flush seconds=1");
    take_kind(&desk, MEMBERSHIP_EVENT_LEFT, PARTING);
    return desk;
}

TEST(a_host_stays_until_the_others_have_read_that_the_job_is_done) {
    CLEARED_BY(desk_clear) struct desk desk = parting_desk();
    take_kind(&desk, MEMBERSHIP_EVENT_LEFT, "settled");
    take_kind(&desk, MEMBERSHIP_EVENT_TIMER_FIRED, "");
}

TEST(a_host_stays_only_a_moment_for_who_does_not_go) {
    CLEARED_BY(desk_clear) struct desk desk = parting_desk();
    take_kind(&desk, MEMBERSHIP_EVENT_TIMER_FIRED, "settled");
    take_kind(&desk, MEMBERSHIP_EVENT_LEFT, "");
}

TEST(a_host_of_which_a_worker_has_failed_stays_until_the_others_have_read_it) {
    struct desk desk = joined_desk();
    take_hosting(&desk, 29500);
    take_kind(&desk, MEMBERSHIP_EVENT_FAILURE_ASKED, "round: failure_asked");
    take_kind(&desk, MEMBERSHIP_EVENT_END_ASKED, "flush seconds=1");
    take_kind(&desk, MEMBERSHIP_EVENT_LEFT, PARTING);
    take_kind(&desk, MEMBERSHIP_EVENT_LEFT, "settled");
    desk_clear(&desk);
}

/* The lingering is not over when the node is called back: its end is no news to who works. */
TEST(a_host_that_is_called_back_does_not_end_when_nobody_is_connected) {
    CLEARED_BY(desk_clear) struct desk desk = late_desk();
    take_fixed(&desk, (struct round_effect){.kind = ROUND_EFFECT_PEER_RESTART, .attempt = 1},
        "note another node restarts its workers: joining attempt 1; agent: peer_restart attempt=1");
    take_join(&desk, 2, 1, "round: begin rank=1 of 2 attempt=1");
    take_fixed(&desk, placed(1), "agent: joined ticket=2 restarts=1 nodes=2");
    take_kind(&desk, MEMBERSHIP_EVENT_LEFT, "");
    expect_stage(&desk, MEMBERSHIP_JOINED);
}

TEST(the_end_waits_a_second_at_most_for_what_the_store_has_not_answered) {
    CLEARED_BY(desk_clear) struct desk desk = joined_desk();
    take_kind(&desk, MEMBERSHIP_EVENT_END_ASKED, "flush seconds=1");
    take_kind(&desk, MEMBERSHIP_EVENT_LEFT, "settled");
}

TEST(a_failed_join_is_told_as_the_round_tells_it) {
    CLEARED_BY(desk_clear) struct desk desk = desk_of(MEMBERSHIP_FIXED);
    take_join(&desk, 1, 0, "round: begin rank=1 of 2 attempt=0");
    take_fixed(&desk,
        (struct round_effect){
            .kind = ROUND_EFFECT_JOIN_FAILED, .reason = "the store is gone (node 0)"},
        "agent: join_failed ticket=1");
    expect_stage(&desk, MEMBERSHIP_GIVEN_UP);
    assert_string_equal(knowledge_of(&desk)->trouble, "the store is gone (node 0)");
}

TEST(a_failed_peer_is_told_as_the_round_tells_it) {
    CLEARED_BY(desk_clear) struct desk desk = joined_desk();
    take_fixed(&desk,
        (struct round_effect){.kind = ROUND_EFFECT_PEER_FAILED, .reason = "a node failed (node 1)"},
        "agent: peer_failed");
    expect_stage(&desk, MEMBERSHIP_IDLE);
    assert_string_equal(knowledge_of(&desk)->trouble, "a node failed (node 1)");
}

TEST(a_signal_that_ended_a_node_is_meant_for_the_workers_here_too) {
    CLEARED_BY(desk_clear) struct desk desk = joined_desk();
    take_fixed(&desk,
        (struct round_effect){
            .kind = ROUND_EFFECT_PEER_FAILED, .reason = "a node was told to end", .signal = 2},
        "agent: peer_failed signal=2");
}

TEST(what_only_changing_nodes_hear_is_ignored) {
    CLEARED_BY(desk_clear) struct desk desk = joined_desk();
    static const enum membership_event_kind kinds[] = {MEMBERSHIP_EVENT_NONE,
        MEMBERSHIP_EVENT_DOUBT_ASKED, MEMBERSHIP_EVENT_WORLD, MEMBERSHIP_EVENT_ROOT_CAUSE_LEARNT};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        take_kind(&desk, kinds[i], "");
    }
}
