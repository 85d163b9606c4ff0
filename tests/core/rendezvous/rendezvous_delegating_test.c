/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/rendezvous/rendezvous_delegation.h"

static void a_wish_is_said_once_until_it_changes(void **state) {
    (void)state;
    struct rendezvous_delegating delegating;
    struct rendezvous_wish wish = rendezvous_wish_of(RENDEZVOUS_WISH_JOIN);
    rendezvous_delegating_begin(&delegating, true, false, false);
    assert_true(rendezvous_delegating_wish(&delegating, &wish));
    assert_int_equal(delegating.wish.sequence, 1);
    assert_false(rendezvous_delegating_wish(&delegating, &wish));
    wish.ended_round = 3;
    assert_true(rendezvous_delegating_wish(&delegating, &wish));
    assert_int_equal(delegating.wish.sequence, 2);
}

static void a_node_that_leaves_ends_when_the_host_has_heard_of_it(void **state) {
    (void)state;
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

static void what_is_told_of_the_ranks_holds_for_one_round(void **state) {
    (void)state;
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

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_wish_is_said_once_until_it_changes),
    cmocka_unit_test(what_is_told_of_the_ranks_holds_for_one_round),
    cmocka_unit_test(a_node_that_leaves_ends_when_the_host_has_heard_of_it),
};

UNIT_TESTS(tests)
