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

TEST(what_the_rendezvous_tells_of_the_job_is_for_the_membership) {
    static const enum membership_event_kind told[RENDEZVOUS_EFFECT_KIND_COUNT] = {
        [RENDEZVOUS_EFFECT_WORLD] = MEMBERSHIP_EVENT_WORLD,
        [RENDEZVOUS_EFFECT_RELEASED] = MEMBERSHIP_EVENT_WORLD_RELEASED,
        [RENDEZVOUS_EFFECT_ROUND_OVER] = MEMBERSHIP_EVENT_WORLD_OVER,
        [RENDEZVOUS_EFFECT_STORE_AWAITED] = MEMBERSHIP_EVENT_STORE_AWAITED,
        [RENDEZVOUS_EFFECT_CLOSED] = MEMBERSHIP_EVENT_CLOSED,
        [RENDEZVOUS_EFFECT_FAILED] = MEMBERSHIP_EVENT_FAILED,
        [RENDEZVOUS_EFFECT_EXCLUDED] = MEMBERSHIP_EVENT_EXCLUDED,
        [RENDEZVOUS_EFFECT_FAILURE_STANDS] = MEMBERSHIP_EVENT_FAILURE_STANDS,
        [RENDEZVOUS_EFFECT_SETTLED] = MEMBERSHIP_EVENT_SETTLED,
    };
    for (int kind = 0; kind < RENDEZVOUS_EFFECT_KIND_COUNT; kind++) {
        struct rendezvous_effect effect = {.kind = (enum rendezvous_effect_kind)kind};
        effect.told.reason = "";
        assert_int_equal(membership_event_of_rendezvous(&effect), told[kind]);
    }
}

TEST(a_record_that_is_closed_for_a_reason_is_a_failed_job) {
    struct rendezvous_effect effect = {
        .kind = RENDEZVOUS_EFFECT_CLOSED, .told = {.reason = "worker 1 failed"}};
    assert_int_equal(membership_event_of_rendezvous(&effect), MEMBERSHIP_EVENT_JOB_FAILED);
    effect.kind = RENDEZVOUS_EFFECT_ROUND_OVER;
    assert_int_equal(membership_event_of_rendezvous(&effect), MEMBERSHIP_EVENT_WORLD_OVER);
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

TEST(four_kinds_of_events_may_blame_a_worker) {
    int count = 0;
    for (int kind = 0; kind < MEMBERSHIP_EVENT_KIND_COUNT; kind++) {
        count += membership_event_has_account((enum membership_event_kind)kind) ? 1 : 0;
    }
    assert_int_equal(count, 4);
    assert_true(membership_event_has_account(MEMBERSHIP_EVENT_RESTART_ASKED));
    assert_true(membership_event_has_account(MEMBERSHIP_EVENT_DOUBT_ASKED));
    assert_true(membership_event_has_account(MEMBERSHIP_EVENT_FAILURE_ASKED));
    assert_true(membership_event_has_account(MEMBERSHIP_EVENT_ROOT_CAUSE_LEARNT));
}

/* The same words mean something else to nodes of another kind. */
TEST(each_kind_of_node_has_rules_of_its_own) {
    static const char *const answers[MEMBERSHIP_KIND_COUNT] = {
        [MEMBERSHIP_ALONE] = "agent: joined ticket=1 restarts=0 nodes=1",
        [MEMBERSHIP_FIXED] = "round: begin rank=1 of 2 attempt=0",
        [MEMBERSHIP_CHANGING] = "rendezvous: join_asked",
    };
    for (int kind = 0; kind < MEMBERSHIP_KIND_COUNT; kind++) {
        CLEARED_BY(desk_clear) struct desk desk = desk_of((enum membership_kind)kind);
        take_kind(&desk, MEMBERSHIP_EVENT_NONE, "");
        take_join(&desk, 1, 0, answers[kind]);
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
