/* SPDX-License-Identifier: BSD-3-Clause */
/* Of membership_changing: how a node ends. */
#include "unit.h"

#include "node_fixture.h"

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

/* Whoever passes the barrier closes the record; a stranger may close it while the others work. */
TEST(a_host_waits_for_the_others_when_it_is_not_they_who_closed_the_record) {
    CLEARED_BY(desk_clear) struct desk desk = desk_in_barrier();
    take_hosting(&desk, 0);
    take_told(&desk, RENDEZVOUS_EFFECT_CLOSED, "", "agent: barrier_passed");
    take_kind(&desk, MEMBERSHIP_EVENT_END_ASKED, "disconnect; linger seconds=9.22337e+09");
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

TEST(a_host_that_has_no_rendezvous_any_more_does_not_stay_for_long) {
    CLEARED_BY(desk_clear) struct desk desk = desk_joined();
    take_hosting(&desk, 0);
    take_told(&desk, RENDEZVOUS_EFFECT_FAILED, "no connection", "agent: peer_failed");
    take_kind(&desk, MEMBERSHIP_EVENT_END_ASKED, "disconnect; linger seconds=1");
}

TEST(a_host_that_found_no_way_in_does_not_stay_for_long) {
    CLEARED_BY(desk_clear) struct desk desk = desk_joining();
    take_hosting(&desk, 0);
    take_world(&desk, 4, "", WORLD_4);
    take_round(
        &desk, ROUND_EFFECT_JOIN_FAILED, "node 1 did not come", "agent: join_failed ticket=1");
    take_kind(&desk, MEMBERSHIP_EVENT_END_ASKED, "disconnect; linger seconds=1");
}

TEST(a_node_that_does_not_host_the_store_leaves_as_soon_as_it_is_said) {
    CLEARED_BY(desk_clear) struct desk desk = desk_joined();
    take_kind(&desk, MEMBERSHIP_EVENT_LEAVE_ASKED, "round: abandon; rendezvous: leave_asked");
    take_kind(&desk, MEMBERSHIP_EVENT_END_ASKED, "");
    take_kind(&desk, MEMBERSHIP_EVENT_SETTLED, "disconnect; settled");
}

TEST(a_node_that_has_nothing_to_say_ends_at_once) {
    CLEARED_BY(desk_clear) struct desk desk = desk_in_barrier();
    take_round(&desk, ROUND_EFFECT_BARRIER_FAILED, "1 of 2 nodes had come",
        "note 1 of 2 nodes had come; agent: barrier_failed");
    take_kind(&desk, MEMBERSHIP_EVENT_END_ASKED, "disconnect; settled");
}
