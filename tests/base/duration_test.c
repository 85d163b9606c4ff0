/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/duration.h"

TEST(fractions_of_a_second_are_kept) {
    assert_int_equal(duration_from_seconds(0.25).nanoseconds, 250000000);
}

TEST(negative_seconds_are_no_time) {
    assert_int_equal(duration_from_seconds(-1).nanoseconds, 0);
}

TEST(huge_durations_saturate) {
    assert_int_equal(duration_from_seconds(1e30).nanoseconds, INT64_MAX);
    assert_int_equal(instant_after((struct instant){5}, DURATION_FOREVER).nanoseconds, INT64_MAX);
}

TEST(milliseconds_round_up_so_timers_are_never_early) {
    assert_int_equal(duration_milliseconds_ceiling((struct duration){1}), 1);
    assert_int_equal(duration_milliseconds_ceiling((struct duration){2000000}), 2);
}

TEST(what_is_left_of_a_timeout_is_told_as_it_was_chosen) {
    assert_true(duration_seconds_told(duration_from_milliseconds(995)) == 1);
    assert_true(duration_seconds_told(duration_from_milliseconds(300000)) == 300);
    assert_true(duration_seconds_told(duration_from_milliseconds(1201)) == 1.3);
    assert_true(duration_seconds_told(duration_from_milliseconds(20)) == 0.02);
    assert_true(duration_seconds_told(DURATION_FOREVER) > 1e15);
}

TEST(nothing_remains_until_a_past_instant) {
    struct instant earlier = {10};
    struct instant later = {30};
    assert_int_equal(instant_until(later, earlier).nanoseconds, 0);
    assert_int_equal(instant_until(earlier, later).nanoseconds, 20);
}

TEST(the_earlier_of_two_instants_is_found) {
    struct instant earlier = {10};
    struct instant later = {30};
    assert_int_equal(instant_earlier(later, earlier).nanoseconds, 10);
    assert_int_equal(instant_earlier(earlier, later).nanoseconds, 10);
}
