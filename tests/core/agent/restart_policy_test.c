/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/agent/agent_machine.h"

static void each_restart_is_used_once(void **state) {
    (void)state;
    struct restart_policy policy;
    restart_policy_init(&policy, 2);
    assert_int_equal(restart_policy_attempt(&policy), 0);
    assert_int_equal(restart_policy_remaining(&policy), 2);
    assert_true(restart_policy_take(&policy));
    assert_true(restart_policy_take(&policy));
    assert_false(restart_policy_take(&policy));
    assert_int_equal(restart_policy_attempt(&policy), 2);
    assert_int_equal(restart_policy_remaining(&policy), 0);
}

static void without_restarts_the_first_failure_is_final(void **state) {
    (void)state;
    struct restart_policy policy;
    restart_policy_init(&policy, 0);
    assert_false(restart_policy_take(&policy));
    assert_int_equal(restart_policy_attempt(&policy), 0);
}

static void a_peer_can_advance_the_attempt_but_not_beyond_the_maximum(void **state) {
    (void)state;
    struct restart_policy policy;
    restart_policy_init(&policy, 3);
    assert_true(restart_policy_advance_to(&policy, 2));
    assert_true(restart_policy_advance_to(&policy, 1));
    assert_int_equal(restart_policy_attempt(&policy), 2);
    assert_false(restart_policy_advance_to(&policy, 4));
    assert_int_equal(restart_policy_attempt(&policy), 2);
}

static void the_word_of_the_job_is_taken_whatever_it_is(void **state) {
    (void)state;
    struct restart_policy policy;
    restart_policy_init(&policy, 3);
    assert_true(restart_policy_take(&policy));
    restart_policy_set(&policy, 0);
    assert_int_equal(restart_policy_remaining(&policy), 3);
    restart_policy_set(&policy, 5);
    assert_int_equal(restart_policy_attempt(&policy), 5);
    assert_int_equal(restart_policy_remaining(&policy), 0);
    assert_false(restart_policy_take(&policy));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_restart_is_used_once),
    cmocka_unit_test(without_restarts_the_first_failure_is_final),
    cmocka_unit_test(a_peer_can_advance_the_attempt_but_not_beyond_the_maximum),
    cmocka_unit_test(the_word_of_the_job_is_taken_whatever_it_is),
};

UNIT_TESTS(tests)
