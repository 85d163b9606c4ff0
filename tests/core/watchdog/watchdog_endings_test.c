/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/watchdog_fixture.h"

static const struct watchdog_settings plain = {.maximum_ancestors = 4};
static const struct watchdog_settings looking = {
    .maximum_ancestors = 4, .looks_first = true, .look_bound = {INT64_C(2000000000)}};

static const char *expire(struct watchdog_fixture *fixture, int64_t now) {
    fixture->now = now;
    return watchdog_fixture_happens(fixture, WATCHDOG_EVENT_DEADLINE_PASSED);
}

static const char *fire(struct watchdog_fixture *fixture, int64_t now) {
    fixture->now = now;
    return watchdog_fixture_happens(fixture, WATCHDOG_EVENT_TIMER_FIRED);
}

static int64_t last_progress(const struct watchdog_fixture *fixture) {
    struct wall_time now = {fixture->now * 1000000};
    return watchdog_machine_last_progress(fixture->machine, now).nanoseconds / 1000000;
}

TEST(who_runs_out_of_time_is_signalled) {
    struct watchdog_fixture fixture;
    watchdog_fixture_init(&fixture, plain);
    watchdog_fixture_hold(&fixture, 100, "step", 5000, 9);
    watchdog_fixture_hold(&fixture, 101, "epoch", 8000, 9);
    assert_string_equal(expire(&fixture, 5000), "look_up 100");
    assert_string_equal(watchdog_fixture_see(&fixture, 100, 0), "signal 100/100 9");
    assert_string_equal(watchdog_fixture_signalled(&fixture, WATCHDOG_SIGNAL_SENT),
        "signalled 100:step rank=0, deadline 8000");
    watchdog_fixture_clear(&fixture);
}

TEST(all_that_have_expired_are_seen_to_one_after_the_other) {
    struct watchdog_fixture fixture;
    watchdog_fixture_init(&fixture, plain);
    watchdog_fixture_hold(&fixture, 100, "step", 5000, 9);
    watchdog_fixture_hold(&fixture, 101, "epoch", 5001, 9);
    assert_string_equal(expire(&fixture, 5001), "look_up 100");
    watchdog_fixture_see(&fixture, 100, 0);
    assert_string_equal(watchdog_fixture_signalled(&fixture, WATCHDOG_SIGNAL_SENT),
        "signalled 100:step rank=0, look_up 101");
    watchdog_fixture_see(&fixture, 101, 1);
    assert_string_equal(watchdog_fixture_signalled(&fixture, WATCHDOG_SIGNAL_NOBODY), "");
    watchdog_fixture_clear(&fixture);
}

TEST(another_process_with_the_same_pid_is_left_alone) {
    struct watchdog_fixture fixture;
    watchdog_fixture_init(&fixture, plain);
    watchdog_fixture_hold(&fixture, 100, "step", 5000, 9);
    expire(&fixture, 5000);
    assert_string_equal(watchdog_fixture_see(&fixture, 77, 0), "gone 100");
    watchdog_fixture_hold(&fixture, 100, "step", 6000, 9);
    expire(&fixture, 6000);
    assert_string_equal(watchdog_fixture_see(&fixture, 100, -1), "gone 100");
    watchdog_fixture_hold(&fixture, 100, "step", 7000, 9);
    expire(&fixture, 7000);
    assert_string_equal(watchdog_fixture_happens(&fixture, WATCHDOG_EVENT_SEEN), "gone 100");
    watchdog_fixture_clear(&fixture);
}

TEST(a_timer_without_a_signal_is_only_told) {
    struct watchdog_fixture fixture;
    watchdog_fixture_init(&fixture, looking);
    watchdog_fixture_hold(&fixture, 100, "step", 5000, 0);
    expire(&fixture, 5000);
    assert_string_equal(watchdog_fixture_see(&fixture, 100, 0), "lives_on 100, expired 100:step");
    watchdog_fixture_clear(&fixture);
}

TEST(the_agent_ends_with_the_process_where_that_is_wanted) {
    struct watchdog_fixture fixture;
    struct watchdog_settings settings = plain;
    settings.ends_agent = true;
    watchdog_fixture_init(&fixture, settings);
    watchdog_fixture_hold(&fixture, 100, "step", 5000, 9);
    watchdog_fixture_hold(&fixture, 101, "step", 5000, 9);
    expire(&fixture, 5000);
    watchdog_fixture_see(&fixture, 100, 0);
    assert_string_equal(watchdog_fixture_signalled(&fixture, WATCHDOG_SIGNAL_SENT),
        "signalled 100:step rank=0, agent_to_end, look_up 101");
    /* The agent stops its workers: the machine gets this event before the answer. */
    watchdog_fixture_happens(&fixture, WATCHDOG_EVENT_END);
    assert_string_equal(watchdog_fixture_see(&fixture, 101, 1), "");
    watchdog_fixture_clear(&fixture);
}

TEST(who_must_not_be_signalled_is_tried_again_in_a_second) {
    struct watchdog_fixture fixture;
    watchdog_fixture_init(&fixture, plain);
    watchdog_fixture_hold(&fixture, 100, "step", 5000, 9);
    expire(&fixture, 5000);
    watchdog_fixture_see(&fixture, 100, 0);
    assert_string_equal(watchdog_fixture_signalled(&fixture, WATCHDOG_SIGNAL_REFUSED),
        "untouched 100, deadline 6000");
    fixture.now = 5500;
    assert_int_equal(last_progress(&fixture), 5000);
    assert_string_equal(expire(&fixture, 6000), "look_up 100");
    watchdog_fixture_see(&fixture, 100, 0);
    watchdog_fixture_signalled(&fixture, WATCHDOG_SIGNAL_REFUSED);
    assert_int_equal(last_progress(&fixture), 5000);
    expire(&fixture, 7000);
    watchdog_fixture_see(&fixture, 100, 0);
    watchdog_fixture_signalled(&fixture, WATCHDOG_SIGNAL_SENT);
    assert_int_equal(last_progress(&fixture), 7000);
    watchdog_fixture_clear(&fixture);
}

TEST(who_goes_on_is_overdue_no_more) {
    struct watchdog_fixture fixture;
    watchdog_fixture_init(&fixture, plain);
    watchdog_fixture_hold(&fixture, 100, "step", 5000, 9);
    expire(&fixture, 5000);
    watchdog_fixture_see(&fixture, 100, 0);
    watchdog_fixture_signalled(&fixture, WATCHDOG_SIGNAL_REFUSED);
    watchdog_fixture_hold(&fixture, 100, "next", 9000, 9);
    fixture.now = 5500;
    assert_int_equal(last_progress(&fixture), 5500);
    watchdog_fixture_clear(&fixture);
}

TEST(a_timer_that_nobody_has_seen_to_is_no_progress) {
    struct watchdog_fixture fixture;
    watchdog_fixture_init(&fixture, plain);
    watchdog_fixture_hold(&fixture, 100, "step", 5000, 9);
    assert_int_equal(last_progress(&fixture), 1000);
    fixture.now = 5400;
    assert_int_equal(last_progress(&fixture), 5000);
    watchdog_fixture_clear(&fixture);
}

/* Two processes with expired timers are being looked at. */
static void look_at_two(struct watchdog_fixture *fixture, struct watchdog_settings settings) {
    watchdog_fixture_init(fixture, settings);
    watchdog_fixture_hold(fixture, 100, "step", 5000, 9);
    watchdog_fixture_hold(fixture, 101, "step", 5000, 9);
    expire(fixture, 5000);
    assert_string_equal(watchdog_fixture_see(fixture, 100, 0),
        "looks_begun, no_timer, look 100:step rank=0 bound=2000, look_up 101");
    fixture->now = 5100;
    assert_string_equal(
        watchdog_fixture_see(fixture, 101, 1), "no_timer, look 101:step rank=1 bound=1900");
}

TEST(all_are_looked_at_before_one_is_ended) {
    struct watchdog_fixture fixture;
    look_at_two(&fixture, looking);
    assert_int_equal(last_progress(&fixture), 5000);
    assert_string_equal(watchdog_fixture_happens(&fixture, WATCHDOG_EVENT_LOOKED_AT), "no_timer");
    assert_string_equal(watchdog_fixture_happens(&fixture, WATCHDOG_EVENT_LOOKED_AT), "timer 0");
    assert_string_equal(fire(&fixture, 5101), "look_up 101");
    assert_string_equal(watchdog_fixture_see(&fixture, 101, 1), "signal 101/101 9");
    assert_string_equal(watchdog_fixture_signalled(&fixture, WATCHDOG_SIGNAL_SENT),
        "signalled 101:step rank=1, look_up 100");
    watchdog_fixture_see(&fixture, 100, 0);
    assert_string_equal(watchdog_fixture_signalled(&fixture, WATCHDOG_SIGNAL_SENT),
        "signalled 100:step rank=0, looks_over, no_timer");
    assert_int_equal(last_progress(&fixture), 5101);
    watchdog_fixture_clear(&fixture);
}

TEST(the_agent_is_told_once_of_all_who_are_ended_together) {
    struct watchdog_fixture fixture;
    struct watchdog_settings settings = looking;
    settings.ends_agent = true;
    look_at_two(&fixture, settings);
    watchdog_fixture_happens(&fixture, WATCHDOG_EVENT_LOOKED_AT);
    watchdog_fixture_happens(&fixture, WATCHDOG_EVENT_LOOKED_AT);
    fire(&fixture, 5101);
    watchdog_fixture_see(&fixture, 101, 1);
    assert_string_equal(watchdog_fixture_signalled(&fixture, WATCHDOG_SIGNAL_SENT),
        "signalled 101:step rank=1, look_up 100");
    watchdog_fixture_see(&fixture, 100, 0);
    assert_string_equal(watchdog_fixture_signalled(&fixture, WATCHDOG_SIGNAL_SENT),
        "signalled 100:step rank=0, agent_to_end, looks_over, no_timer");
    watchdog_fixture_clear(&fixture);
}

TEST(whoever_expires_a_moment_later_is_waited_for) {
    struct watchdog_fixture fixture;
    watchdog_fixture_init(&fixture, looking);
    watchdog_fixture_hold(&fixture, 100, "step", 5000, 9);
    watchdog_fixture_hold(&fixture, 101, "step", 5200, 9);
    expire(&fixture, 5000);
    watchdog_fixture_see(&fixture, 100, 0);
    assert_string_equal(watchdog_fixture_happens(&fixture, WATCHDOG_EVENT_LOOKED_AT), "timer 5250");
    expire(&fixture, 5200);
    assert_string_equal(
        watchdog_fixture_see(&fixture, 101, 1), "no_timer, look 101:step rank=1 bound=1800");
    assert_string_equal(watchdog_fixture_happens(&fixture, WATCHDOG_EVENT_LOOKED_AT), "timer 0");
    watchdog_fixture_clear(&fixture);
}

/* The window begins with the first look, and a timer at its end is not in it. */
TEST(nobody_is_waited_for_longer_than_the_window) {
    struct watchdog_fixture fixture;
    watchdog_fixture_init(&fixture, looking);
    watchdog_fixture_hold(&fixture, 100, "step", 5000, 9);
    watchdog_fixture_hold(&fixture, 101, "step", 5250, 9);
    expire(&fixture, 5000);
    watchdog_fixture_see(&fixture, 100, 0);
    assert_string_equal(watchdog_fixture_happens(&fixture, WATCHDOG_EVENT_LOOKED_AT), "timer 0");
    watchdog_fixture_clear(&fixture);
    watchdog_fixture_init(&fixture, looking);
    watchdog_fixture_hold(&fixture, 100, "step", 5000, 9);
    watchdog_fixture_hold(&fixture, 101, "step", 5249, 9);
    expire(&fixture, 5000);
    watchdog_fixture_see(&fixture, 100, 0);
    assert_string_equal(watchdog_fixture_happens(&fixture, WATCHDOG_EVENT_LOOKED_AT), "timer 5250");
    assert_string_equal(fire(&fixture, 5250), "look_up 100");
    watchdog_fixture_clear(&fixture);
}

TEST(a_short_bound_leaves_no_time_for_others) {
    struct watchdog_fixture fixture;
    struct watchdog_settings settings = looking;
    settings.look_bound = duration_from_milliseconds(100);
    watchdog_fixture_init(&fixture, settings);
    watchdog_fixture_hold(&fixture, 100, "step", 5000, 9);
    watchdog_fixture_hold(&fixture, 101, "step", 5099, 9);
    expire(&fixture, 5000);
    watchdog_fixture_see(&fixture, 100, 0);
    assert_string_equal(watchdog_fixture_happens(&fixture, WATCHDOG_EVENT_LOOKED_AT), "timer 5100");
    expire(&fixture, 5200);
    assert_string_equal(
        watchdog_fixture_see(&fixture, 101, 1), "no_timer, look 101:step rank=1 bound=0");
    watchdog_fixture_clear(&fixture);
}

TEST(who_was_looked_at_and_must_not_be_signalled_is_tried_again_alone) {
    struct watchdog_fixture fixture;
    look_at_two(&fixture, looking);
    watchdog_fixture_happens(&fixture, WATCHDOG_EVENT_LOOKED_AT);
    watchdog_fixture_happens(&fixture, WATCHDOG_EVENT_LOOKED_AT);
    fire(&fixture, 5101);
    watchdog_fixture_see(&fixture, 101, 1);
    assert_string_equal(watchdog_fixture_signalled(&fixture, WATCHDOG_SIGNAL_REFUSED),
        "untouched 101, look_up 100");
    watchdog_fixture_see(&fixture, 100, 0);
    assert_string_equal(watchdog_fixture_signalled(&fixture, WATCHDOG_SIGNAL_SENT),
        "signalled 100:step rank=0, looks_over, timer 6101");
    assert_int_equal(last_progress(&fixture), 5100);
    assert_string_equal(fire(&fixture, 6100), "timer 6101");
    assert_string_equal(fire(&fixture, 6101), "look_up 101");
    watchdog_fixture_see(&fixture, 101, 1);
    assert_string_equal(watchdog_fixture_signalled(&fixture, WATCHDOG_SIGNAL_SENT),
        "signalled 101:step rank=1, no_timer");
    watchdog_fixture_clear(&fixture);
}

TEST(nobody_is_ended_once_the_group_is_stopped) {
    struct watchdog_fixture fixture;
    look_at_two(&fixture, looking);
    watchdog_fixture_happens(&fixture, WATCHDOG_EVENT_END);
    assert_int_equal(last_progress(&fixture), 5100);
    watchdog_fixture_happens(&fixture, WATCHDOG_EVENT_LOOKED_AT);
    assert_string_equal(watchdog_fixture_happens(&fixture, WATCHDOG_EVENT_LOOKED_AT), "timer 0");
    assert_string_equal(fire(&fixture, 5101), "looks_over, no_timer");
    watchdog_fixture_clear(&fixture);
}

TEST(who_was_looked_at_before_another_beginning_is_forgotten) {
    struct watchdog_fixture fixture;
    look_at_two(&fixture, looking);
    watchdog_fixture_happens(&fixture, WATCHDOG_EVENT_LOOKED_AT);
    watchdog_fixture_happens(&fixture, WATCHDOG_EVENT_END);
    watchdog_fixture_happens(&fixture, WATCHDOG_EVENT_BEGIN);
    assert_string_equal(watchdog_fixture_happens(&fixture, WATCHDOG_EVENT_LOOKED_AT), "");
    assert_string_equal(fire(&fixture, 5101), "no_timer");
    watchdog_fixture_clear(&fixture);
}
