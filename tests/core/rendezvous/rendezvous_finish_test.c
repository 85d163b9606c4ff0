/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/rendezvous/rendezvous_member.h"

static void until_the_store_answers_somebody_is_done(void **state) {
    (void)state;
    struct rendezvous_finish finish = {0};
    assert_false(rendezvous_finish_is_anywhere(&finish));
    assert_true(rendezvous_finish_ask(&finish, 3));
    assert_true(rendezvous_finish_is_anywhere(&finish));
    rendezvous_finish_take_count(&finish, 0);
    assert_false(rendezvous_finish_is_anywhere(&finish));
}

static void the_store_is_asked_once_between_two_signs_of_life(void **state) {
    (void)state;
    struct rendezvous_finish finish = {0};
    assert_true(rendezvous_finish_ask(&finish, 3));
    assert_false(rendezvous_finish_ask(&finish, 3));
    rendezvous_finish_forget_count(&finish);
    assert_true(rendezvous_finish_ask(&finish, 3));
}

static void what_is_known_of_one_round_says_nothing_of_the_next(void **state) {
    (void)state;
    struct rendezvous_finish finish = {0};
    assert_true(rendezvous_finish_ask(&finish, 3));
    rendezvous_finish_take_count(&finish, 0);
    assert_true(rendezvous_finish_ask(&finish, 4));
    assert_true(rendezvous_finish_is_anywhere(&finish));
}

static void a_node_that_was_done_may_have_to_run_again(void **state) {
    (void)state;
    struct rendezvous_finish finish = {0};
    rendezvous_finish_enter(&finish);
    assert_true(finish.is_here);
    rendezvous_finish_leave(&finish);
    assert_false(finish.is_here);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(until_the_store_answers_somebody_is_done),
    cmocka_unit_test(the_store_is_asked_once_between_two_signs_of_life),
    cmocka_unit_test(what_is_known_of_one_round_says_nothing_of_the_next),
    cmocka_unit_test(a_node_that_was_done_may_have_to_run_again),
};

UNIT_TESTS(tests)
