/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/watchdog/watchdog_machine.h"

static struct instant at(int64_t milliseconds) {
    return (struct instant){milliseconds * 1000000};
}

static int64_t begin_look(struct joint_ending *ending, int64_t now) {
    struct duration two_seconds = duration_from_seconds(2);
    return joint_ending_begin_look(ending, at(now), two_seconds).nanoseconds / 1000000;
}

static bool is_due(const struct joint_ending *ending, int64_t now, int64_t next) {
    struct instant then = at(next);
    struct instant due = joint_ending_due(ending, next < 0 ? NULL : &then);
    return !instant_is_before(at(now), due);
}

static void one_is_ended_when_it_has_been_looked_at(void **state) {
    (void)state;
    struct joint_ending ending = {0};
    assert_false(is_due(&ending, 1000000, -1));
    assert_int_equal(begin_look(&ending, 1000), 2000);
    assert_false(is_due(&ending, 1000000, -1));
    joint_ending_end_look(&ending);
    assert_true(is_due(&ending, 1005, -1));
}

static void all_are_looked_at_before_one_is_ended(void **state) {
    (void)state;
    struct joint_ending ending = {0};
    assert_int_equal(begin_look(&ending, 1000), 2000);
    assert_int_equal(begin_look(&ending, 1100), 1900);
    joint_ending_end_look(&ending);
    assert_false(is_due(&ending, 1000000, -1));
    joint_ending_end_look(&ending);
    assert_true(is_due(&ending, 1200, -1));
}

static void a_timer_that_expires_a_moment_later_is_waited_for(void **state) {
    (void)state;
    struct joint_ending ending = {0};
    begin_look(&ending, 1000);
    joint_ending_end_look(&ending);
    assert_false(is_due(&ending, 1010, 1200));
    /* The next timer has expired, but its process is not looked at yet. */
    assert_false(is_due(&ending, 1210, 1200));
    begin_look(&ending, 1211);
    assert_false(is_due(&ending, 1215, 1260));
    joint_ending_end_look(&ending);
    assert_true(is_due(&ending, 1215, 1260));
    assert_true(is_due(&ending, 1215, -1));
}

/* The next timer may be released, or be acquired again and again. */
static void nobody_is_waited_for_longer_than_the_window(void **state) {
    (void)state;
    struct joint_ending ending = {0};
    begin_look(&ending, 1000);
    joint_ending_end_look(&ending);
    assert_false(is_due(&ending, 1249, 1249));
    assert_true(is_due(&ending, 1250, 1249));
}

static void a_short_bound_leaves_no_time_for_others(void **state) {
    (void)state;
    struct joint_ending ending = {0};
    assert_int_equal(
        joint_ending_begin_look(&ending, at(1000), duration_from_milliseconds(100)).nanoseconds,
        100000000);
    joint_ending_end_look(&ending);
    assert_true(is_due(&ending, 1100, 1099));
    assert_int_equal(begin_look(&ending, 1200), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(one_is_ended_when_it_has_been_looked_at),
    cmocka_unit_test(all_are_looked_at_before_one_is_ended),
    cmocka_unit_test(a_timer_that_expires_a_moment_later_is_waited_for),
    cmocka_unit_test(nobody_is_waited_for_longer_than_the_window),
    cmocka_unit_test(a_short_bound_leaves_no_time_for_others),
};

UNIT_TESTS(tests)
