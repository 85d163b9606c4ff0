/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/rendezvous/rendezvous_delegates.h"
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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_wish_that_is_heard_again_is_nothing_new),
    cmocka_unit_test(who_wishes_nothing_or_is_gone_is_forgotten),
    cmocka_unit_test(a_node_in_an_open_round_is_not_told_who_else_comes),
    cmocka_unit_test(a_node_is_told_that_it_has_left_and_what_is_withdrawn),
};

TEST_MAIN(tests)
