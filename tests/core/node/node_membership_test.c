/* SPDX-License-Identifier: BSD-3-Clause */
/* Which word of which machine is for the membership. What it does with them is tested in
 * membership_alone_test.c, membership_fixed_test.c and membership_changing_test.c. */
#include "unit.h"

#include "node_fixture.h"

TEST(what_the_agent_asks_of_the_job_is_for_the_membership) {
    static const enum membership_event_kind told[AGENT_EFFECT_COUNT] = {
        [AGENT_EFFECT_JOIN] = MEMBERSHIP_EVENT_JOIN_ASKED,
        [AGENT_EFFECT_ENTER_BARRIER] = MEMBERSHIP_EVENT_BARRIER_ASKED,
        [AGENT_EFFECT_ANNOUNCE_LEAVE] = MEMBERSHIP_EVENT_LEAVE_ASKED,
        [AGENT_EFFECT_ANNOUNCE_SUCCESS] = MEMBERSHIP_EVENT_SUCCESS_ASKED,
    };
    for (int kind = 0; kind < AGENT_EFFECT_COUNT; kind++) {
        assert_int_equal(membership_event_of_agent((enum agent_effect_kind)kind), told[kind]);
    }
}

TEST(what_a_round_tells_of_the_job_is_for_the_membership) {
    static const enum membership_event_kind told[ROUND_EFFECT_KIND_COUNT] = {
        [ROUND_EFFECT_OPENED] = MEMBERSHIP_EVENT_STORE_OPENED,
        [ROUND_EFFECT_JOINED] = MEMBERSHIP_EVENT_PLACED,
        [ROUND_EFFECT_JOIN_FAILED] = MEMBERSHIP_EVENT_NOT_PLACED,
        [ROUND_EFFECT_BARRIER_PASSED] = MEMBERSHIP_EVENT_BARRIER_PASSED,
        [ROUND_EFFECT_BARRIER_FAILED] = MEMBERSHIP_EVENT_BARRIER_FAILED,
        [ROUND_EFFECT_BARRIER_LATE] = MEMBERSHIP_EVENT_BARRIER_LATE,
        [ROUND_EFFECT_RANK_DISPUTED] = MEMBERSHIP_EVENT_RANK_DISPUTED,
        [ROUND_EFFECT_PEER_RESTART] = MEMBERSHIP_EVENT_PEER_RESTART,
        [ROUND_EFFECT_PEER_FAILED] = MEMBERSHIP_EVENT_PEER_FAILED,
    };
    for (int kind = 0; kind < ROUND_EFFECT_KIND_COUNT; kind++) {
        assert_int_equal(membership_event_of_round((enum round_effect_kind)kind), told[kind]);
    }
}

TEST(a_membership_may_end_at_any_time_and_frees_what_it_knows) {
    struct failure_account account = account_of(OTHER);
    struct desk desk = desk_of(MEMBERSHIP_CHANGING);
    take_join(&desk, 1, 0, "rendezvous: join_asked");
    take_world(&desk, 4, "",
        "note round 4 of job 'job': this node is rank 0 of 2 nodes; round: begin 4 rank=0 of 2");
    take_placed(&desk, 4, 0, "rendezvous: placed; agent: joined ticket=1 restarts=0 nodes=2");
    take_account(&desk, MEMBERSHIP_EVENT_ROOT_CAUSE_LEARNT, &account, "");
    take_told(&desk, RENDEZVOUS_EFFECT_FAILED, "no connection", "agent: peer_failed");
    take_told(&desk, RENDEZVOUS_EFFECT_CLOSED, "worker 5 failed", "look_for_root_cause round=4");
    desk_clear(&desk); /* the sanitizer looks */
}
