/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/standby/standby_plan.h"

static void the_pause_after_a_death_doubles_until_there_were_too_many(void **state) {
    (void)state;
    struct standby_failures failures = {0};
    struct duration pause;
    assert_true(standby_failures_take_death(&failures, &pause));
    assert_int_equal(pause.nanoseconds, duration_from_seconds(60).nanoseconds);
    assert_true(standby_failures_take_death(&failures, &pause));
    assert_int_equal(pause.nanoseconds, duration_from_seconds(120).nanoseconds);
    assert_false(standby_failures_take_death(&failures, &pause));
}

static void one_that_names_nothing_new_about_the_list_it_knows_is_the_last(void **state) {
    (void)state;
    struct standby_failures failures = {0};
    assert_true(standby_failures_take_unsuited(&failures, true, 0));
    assert_false(standby_failures_take_unsuited(&failures, false, 1));
}

static void several_may_find_the_same_about_one_list(void **state) {
    (void)state;
    struct standby_failures failures = {0};
    assert_true(standby_failures_take_unsuited(&failures, true, 0));
    assert_true(standby_failures_take_unsuited(&failures, false, 0));
    assert_true(standby_failures_take_unsuited(&failures, false, 0));
    assert_int_equal(failures.cuts, 1);
}

static void the_list_becomes_shorter_only_so_often(void **state) {
    (void)state;
    struct standby_failures failures = {0};
    for (int told = 0; told < STANDBY_CUTS_MAXIMUM; told++) {
        assert_true(standby_failures_take_unsuited(&failures, true, told));
    }
    assert_false(standby_failures_take_unsuited(&failures, true, STANDBY_CUTS_MAXIMUM));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_pause_after_a_death_doubles_until_there_were_too_many),
    cmocka_unit_test(one_that_names_nothing_new_about_the_list_it_knows_is_the_last),
    cmocka_unit_test(several_may_find_the_same_about_one_list),
    cmocka_unit_test(the_list_becomes_shorter_only_so_often),
};

UNIT_TESTS(tests)
