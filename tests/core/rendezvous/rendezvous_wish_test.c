/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/rendezvous/rendezvous_delegation.h"

static void a_wish_says_nothing_of_a_round_at_first(void **state) {
    (void)state;
    struct rendezvous_wish wish = rendezvous_wish_of(RENDEZVOUS_WISH_JOIN);
    assert_int_equal(wish.kind, RENDEZVOUS_WISH_JOIN);
    assert_int_equal(wish.finished_round, RENDEZVOUS_WISH_NO_ROUND);
    assert_int_equal(wish.ended_round, RENDEZVOUS_WISH_NO_ROUND);
    assert_int_equal(wish.doubted_round, RENDEZVOUS_WISH_NO_ROUND);
    assert_string_equal(wish.reason, "");
}

static void wishes_differ_in_what_they_say_and_not_in_their_sequence(void **state) {
    (void)state;
    const struct rendezvous_wish wish = rendezvous_wish_of(RENDEZVOUS_WISH_JOIN);
    struct rendezvous_wish others[8];
    for (size_t i = 0; i < 8; i++) {
        others[i] = wish;
        others[i].sequence = 7;
        assert_true(rendezvous_wish_equals(&wish, &others[i]));
    }
    others[0].kind = RENDEZVOUS_WISH_LOOK;
    others[1].finished_round = 0;
    others[2].ended_round = 0;
    others[3].is_charged = true;
    others[4].doubted_round = 0;
    others[5].signal = 15;
    others[6].reason[0] = 'a';
    others[7].kind = RENDEZVOUS_WISH_OWN;
    for (size_t i = 0; i < 8; i++) {
        assert_false(rendezvous_wish_equals(&wish, &others[i]));
    }
}

/* The host need not look at the record when many say that they are ready. */
static void who_is_ready_wants_nothing_else_of_the_record(void **state) {
    (void)state;
    const struct rendezvous_wish wish = rendezvous_wish_of(RENDEZVOUS_WISH_JOIN);
    struct rendezvous_wish ready = wish;
    ready.meeting = rendezvous_meeting_at(3, NULL, 0);
    assert_false(rendezvous_wish_equals(&wish, &ready));
    assert_true(rendezvous_wish_wants_the_same(&wish, &ready));
    ready.ended_round = 2;
    assert_false(rendezvous_wish_wants_the_same(&wish, &ready));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_wish_says_nothing_of_a_round_at_first),
    cmocka_unit_test(who_is_ready_wants_nothing_else_of_the_record),
    cmocka_unit_test(wishes_differ_in_what_they_say_and_not_in_their_sequence),
};

UNIT_TESTS(tests)
