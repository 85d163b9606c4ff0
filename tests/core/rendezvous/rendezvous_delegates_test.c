/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/rendezvous/rendezvous_delegation.h"
#include "rendezvous_fixture.h"

static struct rendezvous_delegate *hear(struct rendezvous_delegates *delegates, const char *name,
    enum rendezvous_wish_kind kind, int64_t sequence) {
    struct node_identity identity = muster_node(name);
    struct rendezvous_wish wish = rendezvous_wish_of(kind);
    wish.sequence = sequence;
    return rendezvous_delegates_hear(delegates, &identity, &wish);
}

static bool knows(const struct rendezvous_delegates *delegates, const char *name) {
    struct node_identity identity = muster_node(name);
    return rendezvous_delegates_find(delegates, &identity) != NULL;
}

static void a_wish_that_is_heard_again_is_nothing_new(void **state) {
    (void)state;
    struct rendezvous_delegates delegates = {0};
    assert_non_null(hear(&delegates, "a", RENDEZVOUS_WISH_JOIN, 1));
    assert_null(hear(&delegates, "a", RENDEZVOUS_WISH_JOIN, 1));
    assert_non_null(hear(&delegates, "a", RENDEZVOUS_WISH_LEAVE, 2));
    assert_int_equal(delegates.count, 1);
    rendezvous_delegates_clear(&delegates);
}

static void who_wishes_nothing_or_is_gone_is_forgotten(void **state) {
    (void)state;
    struct rendezvous_delegates delegates = {0};
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
    rendezvous_delegates_clear(&delegates);
}

static size_t told(struct rendezvous_delegates *delegates, struct rendezvous_delegate *delegate,
    const struct rendezvous_state *record, size_t place) {
    struct rendezvous_crowd crowd = {.participants = rendezvous_state_participants(record)};
    rendezvous_delegates_begin(delegates);
    rendezvous_delegates_tell(delegates, delegate, record, &crowd, place, false);
    return delegates->telling_count;
}

static void a_node_in_an_open_round_is_not_told_who_else_comes(void **state) {
    (void)state;
    struct rendezvous_delegates delegates = {0};
    struct rendezvous_state record = {0};
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
    rendezvous_state_clear(&record);
    rendezvous_delegates_clear(&delegates);
}

static void a_node_is_told_that_it_has_left_and_what_is_withdrawn(void **state) {
    (void)state;
    struct rendezvous_delegates delegates = {0};
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
    rendezvous_delegates_clear(&delegates);
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

static void a_ranked_world_is_told_with_the_place_where_its_workers_meet(void **state) {
    (void)state;
    struct ranked ranked;
    const struct rendezvous_telling *telling;
    set_up_ranked(&ranked);
    assert_int_equal(told(&ranked.delegates, ranked.b, &ranked.record, 1), 0);
    assert_int_equal(told(&ranked.delegates, ranked.a, &ranked.record, 0), 1);
    telling = &ranked.delegates.tellings[0];
    assert_int_equal(telling->ranks.world_size, 4);
    assert_int_equal(telling->meeting.port, 0);
    struct rendezvous_wish wish = rendezvous_wish_of(RENDEZVOUS_WISH_JOIN);
    wish.sequence = 2;
    wish.meeting = rendezvous_meeting_at(ranked.record.round, "10.0.0.1", 29400);
    (void)rendezvous_delegates_hear(&ranked.delegates, &ranked.b->identity, &wish);
    assert_false(ranked.delegates.is_record_news); /* it is not rank 0 */
    (void)rendezvous_delegates_hear(&ranked.delegates, &ranked.first, &wish);
    assert_true(ranked.delegates.is_record_news);
    assert_int_equal(told(&ranked.delegates, ranked.b, &ranked.record, 1), 1);
    telling = &ranked.delegates.tellings[0];
    assert_int_equal(telling->ranks.base_rank, 2);
    assert_int_equal(telling->meeting.port, 29400);
    assert_string_equal(telling->meeting.address, "10.0.0.1");
    tear_down_ranked(&ranked);
}

static void a_meeting_of_another_round_is_none(void **state) {
    (void)state;
    struct ranked ranked;
    set_up_ranked(&ranked);
    struct rendezvous_meeting other =
        rendezvous_meeting_at(ranked.record.round + 1, "10.0.0.1", 29400);
    rendezvous_delegates_note_meeting(&ranked.delegates, &ranked.first, &other);
    assert_false(ranked.delegates.is_record_news);
    assert_int_equal(told(&ranked.delegates, ranked.b, &ranked.record, 1), 0);
    tear_down_ranked(&ranked);
}

static void nobody_waits_for_a_meeting_with_a_node_that_is_gone(void **state) {
    (void)state;
    struct ranked ranked;
    set_up_ranked(&ranked);
    struct node_identity other = muster_node("c");
    (void)hear(&ranked.delegates, "c", RENDEZVOUS_WISH_JOIN, 1);
    rendezvous_delegates_forget(&ranked.delegates, &other);
    assert_false(ranked.delegates.is_record_news);
    rendezvous_delegates_forget(&ranked.delegates, &ranked.first);
    assert_true(ranked.delegates.is_record_news);
    struct node_identity b = muster_node("b");
    ranked.b = ranked.delegates.items;
    assert_true(node_identity_equals(&ranked.b->identity, &b));
    assert_int_equal(told(&ranked.delegates, ranked.b, &ranked.record, 1), 1);
    assert_int_equal(ranked.delegates.tellings[0].meeting.port, 0);
    tear_down_ranked(&ranked);
}

static void a_closed_record_is_told_without_a_meeting(void **state) {
    (void)state;
    struct ranked ranked;
    set_up_ranked(&ranked);
    ranked.record.is_closed = true;
    assert_int_equal(told(&ranked.delegates, ranked.b, &ranked.record, 1), 1);
    tear_down_ranked(&ranked);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_wish_that_is_heard_again_is_nothing_new),
    cmocka_unit_test(who_wishes_nothing_or_is_gone_is_forgotten),
    cmocka_unit_test(a_node_in_an_open_round_is_not_told_who_else_comes),
    cmocka_unit_test(a_node_is_told_that_it_has_left_and_what_is_withdrawn),
    cmocka_unit_test(a_ranked_world_is_told_with_the_place_where_its_workers_meet),
    cmocka_unit_test(a_meeting_of_another_round_is_none),
    cmocka_unit_test(nobody_waits_for_a_meeting_with_a_node_that_is_gone),
    cmocka_unit_test(a_closed_record_is_told_without_a_meeting),
};

UNIT_TESTS(tests)
