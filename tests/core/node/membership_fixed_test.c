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

TEST(a_restart_anywhere_is_told_with_its_attempt) {
    CLEARED_BY(desk_clear) struct desk desk = joined_desk();
    take_fixed(&desk, (struct round_effect){.kind = ROUND_EFFECT_PEER_RESTART, .attempt = 1},
        "note another node restarts its workers: joining attempt 1; agent: peer_restart attempt=1");
    take_join(&desk, 2, 1, "round: begin rank=1 of 2 attempt=1");
    take_fixed(&desk, placed(1), "agent: joined ticket=2 restarts=1 nodes=2");
    assert_int_equal(knowledge_of(&desk)->placement.attempt, 1);
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
