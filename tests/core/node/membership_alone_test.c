/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/node/node_membership.h"
#include "node_fixture.h"

TEST(the_next_attempt_waits_for_an_empty_store_on_the_same_port) {
    CLEARED_BY(desk_clear) struct desk desk = desk_of(MEMBERSHIP_ALONE);
    take_hosting(&desk, 40001);
    take_join(&desk, 1, 0, "agent: joined ticket=1 restarts=0 nodes=1");
    take_join(&desk, 2, 1, "renew_worker_store");
    expect_stage(&desk, MEMBERSHIP_JOINING);
    take_kind(&desk, MEMBERSHIP_EVENT_STORE_RENEWED, "agent: joined ticket=2 restarts=1 nodes=1");
    expect_stage(&desk, MEMBERSHIP_JOINED);
    assert_int_equal(knowledge_of(&desk)->placement.attempt, 1);
    assert_int_equal(knowledge_of(&desk)->placement.master_port, 40001);
}

TEST(ranks_that_cannot_be_assigned_fail_the_join) {
    CLEARED_BY(desk_clear) struct desk desk = desk_of(MEMBERSHIP_ALONE);
    desk.membership.settings.local_world_size = 0;
    take_join(&desk, 1, 0, "agent: join_failed ticket=1");
    assert_string_equal(knowledge_of(&desk)->trouble, "the world is too large");
    expect_stage(&desk, MEMBERSHIP_GIVEN_UP);
}

/* Placed by the program. */

static struct desk placed_desk(void) {
    struct membership_settings settings = membership_settings_of(MEMBERSHIP_ALONE);
    struct desk desk;
    settings.is_placed = true;
    node_membership_init(&desk.membership, &settings);
    return desk;
}

static const struct membership_told told_round = {.group_rank = 1,
    .group_world_size = 2,
    .ranks = {3, 5, 1, 3},
    .master_port = 29400,
    .text = "node0"};

static void take_told_round(
    struct desk *desk, enum membership_event_kind kind, const char *expected) {
    take(desk, (struct membership_event){.kind = kind, .told = &told_round}, expected);
}

TEST(a_node_is_where_its_program_says) {
    CLEARED_BY(desk_clear) struct desk desk = placed_desk();
    take_join(&desk, 1, 0, "ask_program round attempt=0");
    expect_stage(&desk, MEMBERSHIP_JOINING);
    take_told_round(
        &desk, MEMBERSHIP_EVENT_ROUND_TOLD, "agent: joined ticket=1 restarts=0 nodes=2");
    const struct node_placement *placement = &knowledge_of(&desk)->placement;
    assert_string_equal(placement->master_address, "node0");
    assert_int_equal(placement->master_port, 29400);
    assert_int_equal(placement->group_rank, 1);
    assert_int_equal(placement->ranks.base_rank, 3);
    assert_int_equal(placement->ranks.role_world_size, 3);
    assert_int_equal(placement->round, 0);
    take_told_round(&desk, MEMBERSHIP_EVENT_ROUND_TOLD, "");
    take_kind(&desk, MEMBERSHIP_EVENT_BARRIER_ASKED, "ask_program barrier attempt=0");
    take_kind(&desk, MEMBERSHIP_EVENT_BARRIER_TOLD, "agent: barrier_passed");
    take_kind(&desk, MEMBERSHIP_EVENT_END_ASKED, "settled");
}

TEST(a_round_ends_when_the_program_says_so_and_has_a_number) {
    CLEARED_BY(desk_clear) struct desk desk = placed_desk();
    take_told_round(&desk, MEMBERSHIP_EVENT_ROUND_ENDED, "");
    take_join(&desk, 1, 0, "ask_program round attempt=0");
    take_told_round(&desk, MEMBERSHIP_EVENT_ROUND_ENDED, "");
    take_told_round(
        &desk, MEMBERSHIP_EVENT_ROUND_TOLD, "agent: joined ticket=1 restarts=0 nodes=2");
    take_told_round(&desk, MEMBERSHIP_EVENT_ROUND_ENDED,
        "note joining the job's next round: node0; agent: round_over");
    take_join(&desk, 2, 0, "ask_program round attempt=0");
    take_told_round(
        &desk, MEMBERSHIP_EVENT_ROUND_TOLD, "agent: joined ticket=2 restarts=0 nodes=2");
    assert_int_equal(knowledge_of(&desk)->placement.round, 1);
}

TEST(a_round_whose_workers_fail_is_over_anyhow) {
    CLEARED_BY(desk_clear) struct desk desk = placed_desk();
    take_join(&desk, 1, 0, "ask_program round attempt=0");
    take_told_round(
        &desk, MEMBERSHIP_EVENT_ROUND_TOLD, "agent: joined ticket=1 restarts=0 nodes=2");
    take_kind(&desk, MEMBERSHIP_EVENT_RESTART_ASKED, "");
    take_told_round(&desk, MEMBERSHIP_EVENT_ROUND_ENDED, "");
    take_kind(&desk, MEMBERSHIP_EVENT_BARRIER_TOLD, "");
    take_join(&desk, 2, 1, "ask_program round attempt=1");
    take_told_round(&desk, MEMBERSHIP_EVENT_ROUND_REFUSED, "agent: join_failed ticket=2");
    assert_string_equal(knowledge_of(&desk)->trouble, "node0");
}

TEST(what_only_nodes_among_others_hear_is_ignored) {
    CLEARED_BY(desk_clear) struct desk desk = desk_of(MEMBERSHIP_ALONE);
    static const enum membership_event_kind kinds[] = {MEMBERSHIP_EVENT_NONE,
        MEMBERSHIP_EVENT_WORLD, MEMBERSHIP_EVENT_PEER_FAILED, MEMBERSHIP_EVENT_ROOT_CAUSE_LEARNT};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        take_kind(&desk, kinds[i], "");
    }
}
