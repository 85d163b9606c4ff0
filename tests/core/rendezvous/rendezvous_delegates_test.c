/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <limits.h>

#include "core/rendezvous/rendezvous_delegation.h"
#include "rendezvous_fixture.h"

/* A wish that says something else of the record, in one of its parts. */
enum { WISH_PARTS = 10 };

static struct rendezvous_wish wish_that_differs(const struct rendezvous_wish *wish, size_t part) {
    struct rendezvous_wish others[WISH_PARTS];
    for (size_t i = 0; i < WISH_PARTS; i++) {
        others[i] = *wish;
    }
    others[0].kind = RENDEZVOUS_WISH_LOOK;
    others[1].finished_round = 0;
    others[2].ended_round = 0;
    others[3].is_charged = true;
    others[4].doubted_round = 0;
    others[5].signal = 15;
    others[6].reason[0] = 'a';
    others[7].kind = RENDEZVOUS_WISH_OWN;
    others[8].local_world_size = 1;
    others[9].role[0] = 'a';
    return others[part];
}

static struct rendezvous_delegate *hear(struct rendezvous_delegates *delegates, const char *name,
    enum rendezvous_wish_kind kind, int64_t sequence) {
    struct node_identity identity = muster_node(name);
    struct rendezvous_wish wish = rendezvous_wish_of(kind);
    wish.sequence = sequence;
    return rendezvous_delegates_hear(delegates, &identity, &wish);
}

static bool knows(const struct rendezvous_delegates *delegates, const char *name) {
    struct node_identity identity = muster_node(name);
    return node_table_find(&delegates->places, &identity) != NODE_TABLE_ABSENT;
}

TEST(a_wish_that_is_heard_again_is_nothing_new) {
    CLEARED_BY(rendezvous_delegates_clear) struct rendezvous_delegates delegates = {0};
    assert_non_null(hear(&delegates, "a", RENDEZVOUS_WISH_JOIN, 1));
    assert_null(hear(&delegates, "a", RENDEZVOUS_WISH_JOIN, 1));
    assert_non_null(hear(&delegates, "a", RENDEZVOUS_WISH_LEAVE, 2));
    assert_int_equal(delegates.count, 1);
}

TEST(who_wishes_nothing_or_is_gone_is_forgotten) {
    CLEARED_BY(rendezvous_delegates_clear) struct rendezvous_delegates delegates = {0};
    struct node_identity gone = muster_node("a");
    (void)hear(&delegates, "a", RENDEZVOUS_WISH_JOIN, 1);
    (void)hear(&delegates, "b", RENDEZVOUS_WISH_JOIN, 1);
    (void)hear(&delegates, "c", RENDEZVOUS_WISH_JOIN, 1);
    rendezvous_delegates_forget(&delegates, &gone);
    rendezvous_delegates_forget(&delegates, &gone);
    assert_false(knows(&delegates, "a"));
    assert_true(knows(&delegates, "b") && knows(&delegates, "c"));
    assert_null(hear(&delegates, "c", RENDEZVOUS_WISH_NONE, 0));
    assert_false(knows(&delegates, "c"));
    assert_int_equal(delegates.count, 1);
}

static size_t told(struct rendezvous_delegates *delegates, struct rendezvous_delegate *delegate,
    const struct rendezvous_state *record, size_t place) {
    struct rendezvous_crowd crowd = {.participants = rendezvous_state_participants(record)};
    rendezvous_delegates_begin(delegates);
    rendezvous_delegates_tell(delegates, delegate, record, &crowd, place, false);
    return delegates->telling_count;
}

TEST(a_node_in_an_open_round_is_not_told_who_else_comes) {
    CLEARED_BY(rendezvous_delegates_clear) struct rendezvous_delegates delegates = {0};
    CLEARED_BY(rendezvous_state_clear) struct rendezvous_state record = {0};
    place(&record, muster_node("a"))->is_participant = true;
    struct rendezvous_delegate *a = hear(&delegates, "a", RENDEZVOUS_WISH_JOIN, 1);
    assert_int_equal(told(&delegates, a, &record, 0), 1);
    place(&record, muster_node("b"))->is_participant = true;
    assert_int_equal(told(&delegates, a, &record, 0), 0);
    rendezvous_state_complete(&record);
    assert_int_equal(told(&delegates, a, &record, 0), 1);
    record.is_draining = true;
    assert_int_equal(told(&delegates, a, &record, 0), 0);
    record.is_closed = true;
    assert_int_equal(told(&delegates, a, &record, 0), 1);
}

TEST(a_node_is_told_that_it_has_left_and_what_is_withdrawn) {
    CLEARED_BY(rendezvous_delegates_clear) struct rendezvous_delegates delegates = {0};
    struct rendezvous_state record = {0};
    struct rendezvous_crowd crowd = {0};
    struct rendezvous_delegate *a = hear(&delegates, "a", RENDEZVOUS_WISH_LOOK, 1);
    assert_int_equal(told(&delegates, a, &record, NODE_TABLE_ABSENT), 1);
    a = hear(&delegates, "a", RENDEZVOUS_WISH_LEAVE, 2);
    assert_int_equal(told(&delegates, a, &record, NODE_TABLE_ABSENT), 1);
    assert_int_equal(delegates.tellings[0].answers, 2);
    assert_int_equal(told(&delegates, a, &record, NODE_TABLE_ABSENT), 0);
    rendezvous_delegates_tell(&delegates, a, &record, &crowd, NODE_TABLE_ABSENT, true);
    assert_int_equal(delegates.telling_count, 1);
}

/* Two nodes of a round that this node has ranked; the first has rank 0. */
struct ranked {
    struct rendezvous_delegates delegates;
    struct rendezvous_state record;
    struct node_identity first;
    struct rendezvous_delegate *a;
    struct rendezvous_delegate *b;
};

static void set_up_ranked(struct ranked *ranked) {
    const struct node_role roles[] = {{"trainer", 2}, {"trainer", 2}};
    *ranked = (struct ranked){.first = muster_node("a")};
    place(&ranked->record, muster_node("a"))->is_participant = true;
    place(&ranked->record, muster_node("b"))->is_participant = true;
    rendezvous_state_complete(&ranked->record);
    ranked->record.ranked = ranked->record.round + 1;
    (void)hear(&ranked->delegates, "a", RENDEZVOUS_WISH_JOIN, 1);
    ranked->b = hear(&ranked->delegates, "b", RENDEZVOUS_WISH_JOIN, 1);
    ranked->a = ranked->b - 1;
    assert_true(
        rendezvous_ranking_compute(&ranked->delegates.ranking, ranked->record.round, roles, 2));
    rendezvous_delegates_note_ranking(&ranked->delegates, &ranked->first);
}

static void tear_down_ranked(struct ranked *ranked) {
    rendezvous_state_clear(&ranked->record);
    rendezvous_delegates_clear(&ranked->delegates);
}

TEST_OF(ranked, nobody_waits_for_a_meeting_with_a_node_that_is_gone, set_up_ranked(&fixture),
    tear_down_ranked) {
    struct node_identity other = muster_node("c");
    (void)hear(&fixture->delegates, "c", RENDEZVOUS_WISH_JOIN, 1);
    rendezvous_delegates_forget(&fixture->delegates, &other);
    assert_false(fixture->delegates.is_record_news);
    rendezvous_delegates_forget(&fixture->delegates, &fixture->first);
    assert_true(fixture->delegates.is_record_news);
    struct node_identity b = muster_node("b");
    fixture->b = fixture->delegates.items;
    assert_true(node_identity_equals(&fixture->b->identity, &b));
    assert_int_equal(told(&fixture->delegates, fixture->b, &fixture->record, 1), 1);
    assert_int_equal(fixture->delegates.tellings[0].meeting.port, 0);
}

/* The ranks of a round. */

TEST(each_node_of_the_round_has_its_ranks) {
    struct rendezvous_delegates delegates = {0};
    const struct node_role roles[] = {{"trainer", 2}, {"reader", 1}, {"trainer", 3}};
    const struct rank_assignment last = {3, 6, 2, 5};
    assert_true(rendezvous_ranking_compute(&delegates.ranking, 4, roles, 3));
    struct rank_assignment found = rendezvous_delegates_ranks(&delegates, 4, 2);
    assert_memory_equal(&found, &last, sizeof last);
    assert_int_equal(rendezvous_delegates_ranks(&delegates, 4, 1).role_world_size, 1);
    assert_int_equal(rendezvous_delegates_ranks(&delegates, 4, 3).world_size, 0);
    assert_int_equal(rendezvous_delegates_ranks(&delegates, 4, -1).world_size, 0);
    assert_int_equal(rendezvous_delegates_ranks(&delegates, 5, 0).world_size, 0);
    rendezvous_delegates_clear(&delegates);
    assert_int_equal(rendezvous_delegates_ranks(&delegates, 0, 0).world_size, 0);
}

TEST(without_all_roles_there_are_no_ranks) {
    CLEARED_BY(rendezvous_delegates_clear) struct rendezvous_delegates delegates = {0};
    const struct node_role known[] = {{"trainer", 2}, {"trainer", 1}};
    const struct node_role unknown[] = {{"trainer", 2}, {NULL, 0}};
    const struct node_role too_many[] = {{"trainer", INT_MAX}, {"trainer", 1}};
    assert_true(rendezvous_ranking_compute(&delegates.ranking, 4, known, 2));
    assert_false(rendezvous_ranking_compute(&delegates.ranking, 4, unknown, 2));
    assert_int_equal(rendezvous_delegates_ranks(&delegates, 4, 0).world_size, 0);
    assert_false(rendezvous_ranking_compute(&delegates.ranking, 4, too_many, 2));
    assert_false(rendezvous_ranking_compute(&delegates.ranking, 4, known, 0));
}

/* A node that delegates. */

TEST(a_wish_says_nothing_of_a_round_at_first) {
    struct rendezvous_wish wish = rendezvous_wish_of(RENDEZVOUS_WISH_JOIN);
    assert_int_equal(wish.kind, RENDEZVOUS_WISH_JOIN);
    assert_int_equal(wish.finished_round, RENDEZVOUS_WISH_NO_ROUND);
    assert_int_equal(wish.ended_round, RENDEZVOUS_WISH_NO_ROUND);
    assert_int_equal(wish.doubted_round, RENDEZVOUS_WISH_NO_ROUND);
    assert_string_equal(wish.reason, "");
}

TEST(a_wish_is_said_once_until_it_changes) {
    struct rendezvous_delegating delegating;
    struct rendezvous_wish wish = rendezvous_wish_of(RENDEZVOUS_WISH_JOIN);
    rendezvous_delegating_begin(&delegating, true, false, false);
    assert_true(rendezvous_delegating_wish(&delegating, &wish));
    assert_int_equal(delegating.wish.sequence, 1);
    assert_false(rendezvous_delegating_wish(&delegating, &wish));
    for (size_t i = 0; i < WISH_PARTS; i++) {
        struct rendezvous_wish other = wish_that_differs(&wish, i);
        assert_true(rendezvous_delegating_wish(&delegating, &other));
        assert_true(rendezvous_delegating_wish(&delegating, &wish));
    }
    wish.meeting = rendezvous_meeting_at(3, NULL, 0);
    assert_true(rendezvous_delegating_wish(&delegating, &wish));
    wish.meeting = rendezvous_meeting_at(3, "10.0.0.1", 7);
    assert_true(rendezvous_delegating_wish(&delegating, &wish));
    wish.meeting = rendezvous_meeting_at(3, "10.0.0.2", 7);
    assert_true(rendezvous_delegating_wish(&delegating, &wish));
    assert_false(rendezvous_delegating_wish(&delegating, &wish));
    assert_int_equal(delegating.wish.sequence, 2 * WISH_PARTS + 4);
}

TEST(a_node_that_leaves_ends_when_the_host_has_heard_of_it) {
    struct rendezvous_delegating delegating = {0};
    struct rendezvous_wish wish = rendezvous_wish_of(RENDEZVOUS_WISH_LEAVE);
    assert_true(rendezvous_delegating_may_settle(&delegating));
    rendezvous_delegating_begin(&delegating, true, false, false);
    rendezvous_delegating_take_answer(&delegating, 1);
    assert_false(rendezvous_delegating_may_settle(&delegating)); /* it has not said so yet */
    assert_true(rendezvous_delegating_wish(&delegating, &wish));
    rendezvous_delegating_take_answer(&delegating, 0);
    assert_false(rendezvous_delegating_may_settle(&delegating));
    rendezvous_delegating_take_answer(&delegating, 1);
    assert_true(rendezvous_delegating_may_settle(&delegating));
    rendezvous_delegating_end(&delegating);
    assert_false(delegating.is_on);
}

TEST(what_is_told_of_the_ranks_holds_for_one_round) {
    struct rendezvous_delegating delegating;
    const struct rank_assignment none = {0};
    const struct rendezvous_meeting nowhere = {0};
    rendezvous_delegating_begin(&delegating, true, true, true);
    assert_false(rendezvous_delegating_is_held(&delegating, 0));
    rendezvous_delegating_take_ranks(&delegating, 3, true, &none, &nowhere);
    assert_true(rendezvous_delegating_is_held(&delegating, 3));
    assert_false(rendezvous_delegating_is_held(&delegating, 4));
    rendezvous_delegating_take_ranks(&delegating, 3, false, &none, &nowhere);
    assert_false(rendezvous_delegating_is_held(&delegating, 3));
}

/* Rendezvous gathering. */

static const struct instant start = {.nanoseconds = 1000000000};

static struct instant later(int milliseconds) {
    return instant_after(start, duration_from_milliseconds(milliseconds));
}

static struct rendezvous_settings between(int minimum, int maximum) {
    struct rendezvous_settings settings;
    rendezvous_settings_init(&settings);
    settings.minimum_nodes = minimum;
    settings.maximum_nodes = maximum;
    return settings;
}

/* Twenty are listed in this record, and so many have come. */
static struct rendezvous_gathering with_newcomers(int count, const struct rendezvous_state *seen) {
    struct rendezvous_gathering gathering = {0};
    rendezvous_gathering_look(&gathering, 20);
    for (int i = 0; i < count; i++) {
        rendezvous_gathering_hear(&gathering, true, seen, later(i));
    }
    return gathering;
}

TEST(newcomers_of_a_last_call_are_let_in_by_the_half_or_soon) {
    struct rendezvous_settings settings = between(100, 100);
    struct rendezvous_state open = {.has_deadline = true};
    struct rendezvous_gathering some = with_newcomers(9, &open);
    struct rendezvous_gathering many = with_newcomers(10, &open);
    struct moment next = {0};
    assert_true(rendezvous_gathering_holds(&some, &open, &settings, later(99)));
    assert_false(rendezvous_gathering_holds(&some, &open, &settings, later(100)));
    assert_false(rendezvous_gathering_holds(&many, &open, &settings, later(10)));
    rendezvous_gathering_wake(&some, later(9), &next);
    assert_true(next.is_set);
    assert_int_equal(next.at.nanoseconds, later(100).nanoseconds);
    assert_true(rendezvous_gathering_end(&some, later(100)));
    assert_false(rendezvous_gathering_holds(&some, &open, &settings, later(100)));
    rendezvous_gathering_look(&some, 7);
    rendezvous_gathering_hear(&some, true, &open, later(110));
    assert_false(rendezvous_gathering_holds(&some, &open, &settings, later(110)));
}

TEST(newcomers_of_a_round_that_lacks_many_are_let_in_together) {
    struct rendezvous_settings settings = between(100, 100);
    struct rendezvous_state open = {0};
    struct rendezvous_gathering some = with_newcomers(9, &open);
    struct rendezvous_gathering many = with_newcomers(50, &open);
    struct moment next = {0};
    assert_true(rendezvous_gathering_holds(&many, &open, &settings, later(999)));
    assert_false(rendezvous_gathering_holds(&many, &open, &settings, later(1000)));
    assert_false(rendezvous_gathering_end(&many, later(1000)));
    rendezvous_gathering_wake(&some, later(9), &next);
    assert_int_equal(next.at.nanoseconds, later(1000).nanoseconds);
    next = (struct moment){0};
    rendezvous_gathering_wake(&some, later(1000), &next);
    assert_int_equal(next.at.nanoseconds, later(5000).nanoseconds);
    assert_true(rendezvous_gathering_holds(&some, &open, &settings, later(4999)));
    assert_false(rendezvous_gathering_holds(&some, &open, &settings, later(5000)));
}

TEST(newcomers_of_a_round_that_runs_are_let_in_together) {
    struct rendezvous_settings settings = between(100, 100);
    struct rendezvous_state complete = {.is_complete = true};
    struct rendezvous_gathering gathering = with_newcomers(5, &complete);
    assert_true(rendezvous_gathering_holds(&gathering, &complete, &settings, later(9)));
    assert_false(rendezvous_gathering_holds(&gathering, &complete, &settings, later(10)));
    assert_true(rendezvous_gathering_end(&gathering, later(10)));
}

TEST(who_may_complete_the_round_is_let_in_at_once) {
    struct rendezvous_state open = {0};
    struct rendezvous_gathering gathering = with_newcomers(3, &open);
    struct rendezvous_settings whole = between(23, 23);
    struct rendezvous_settings last_call = between(22, 100);
    struct rendezvous_settings begun = between(20, 100);
    assert_false(rendezvous_gathering_holds(&gathering, &open, &whole, later(3)));
    assert_false(rendezvous_gathering_holds(&gathering, &open, &last_call, later(3)));
    assert_true(rendezvous_gathering_holds(&gathering, &open, &begun, later(3)));
    open.wanted = 23;
    assert_false(rendezvous_gathering_holds(&gathering, &open, &begun, later(3)));
}

TEST(nothing_else_is_held_up) {
    struct rendezvous_settings settings = between(100, 100);
    struct rendezvous_state closed = {.is_closed = true};
    struct rendezvous_state open = {0};
    struct rendezvous_gathering gathering = with_newcomers(3, &open);
    assert_false(rendezvous_gathering_holds(&gathering, &closed, &settings, later(3)));
    rendezvous_gathering_hear(&gathering, false, &open, later(3));
    assert_false(rendezvous_gathering_holds(&gathering, &open, &settings, later(3)));
}
