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

TEST(what_only_nodes_among_others_hear_is_ignored) {
    CLEARED_BY(desk_clear) struct desk desk = desk_of(MEMBERSHIP_ALONE);
    static const enum membership_event_kind kinds[] = {MEMBERSHIP_EVENT_NONE,
        MEMBERSHIP_EVENT_WORLD, MEMBERSHIP_EVENT_PEER_FAILED, MEMBERSHIP_EVENT_ROOT_CAUSE_LEARNT};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        take_kind(&desk, kinds[i], "");
    }
}
