/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/watchdog_fixture.h"

#include "base/log.h"
#include "core/watchdog/watchdog_machine.h"

static const struct watchdog_settings plain = {.maximum_ancestors = 4};

static size_t timer_count(const struct watchdog_fixture *fixture) {
    return watchdog_timer_count(watchdog_machine_timers(fixture->machine));
}

static void a_timer_is_held_once_its_process_is_known_and_watched(void **state) {
    (void)state;
    struct watchdog_fixture fixture;
    watchdog_fixture_init(&fixture, plain);
    assert_string_equal(watchdog_fixture_ask(&fixture, 100, "step", 5000, 9), "look_up 100 asking");
    assert_int_equal(timer_count(&fixture), 0);
    assert_string_equal(watchdog_fixture_see(&fixture, 100, 0), "watch 100");
    assert_string_equal(watchdog_fixture_watched(&fixture, true), "deadline 5000");
    assert_int_equal(timer_count(&fixture), 1);
    assert_int_equal(watchdog_machine_request_count(fixture.machine), 1);
    watchdog_fixture_clear(&fixture);
}

static void a_burst_of_requests_costs_one_look(void **state) {
    (void)state;
    struct watchdog_fixture fixture;
    watchdog_fixture_init(&fixture, plain);
    watchdog_fixture_hold(&fixture, 100, "step", 5000, 9);
    assert_string_equal(watchdog_fixture_ask(&fixture, 100, "later", 6000, 9), "");
    assert_string_equal(watchdog_fixture_ask(&fixture, 100, "sooner", 4000, 9), "deadline 4000");
    fixture.now += KNOWN_PROCESSES_TRUST_MILLISECONDS;
    assert_string_equal(
        watchdog_fixture_ask(&fixture, 100, "again", 7000, 9), "look_up 100 asking");
    watchdog_fixture_clear(&fixture);
}

static void who_is_nobodys_gets_no_timer(void **state) {
    (void)state;
    struct watchdog_fixture fixture;
    watchdog_fixture_init(&fixture, plain);
    watchdog_fixture_ask(&fixture, 100, "step", 5000, 9);
    assert_string_equal(watchdog_fixture_see(&fixture, 100, -1), "refused step");
    assert_int_equal(timer_count(&fixture), 0);
    assert_int_equal(watchdog_machine_request_count(fixture.machine), 1);
    watchdog_fixture_clear(&fixture);
}

static void who_has_ended_needs_no_timer(void **state) {
    (void)state;
    struct watchdog_fixture fixture;
    watchdog_fixture_init(&fixture, plain);
    watchdog_fixture_ask(&fixture, 100, "step", 5000, 9);
    assert_string_equal(watchdog_fixture_happens(&fixture, WATCHDOG_EVENT_SEEN), "too_late 100");
    watchdog_fixture_ask(&fixture, 100, "step", 5000, 9);
    watchdog_fixture_see(&fixture, 100, 0);
    assert_string_equal(watchdog_fixture_watched(&fixture, false), "too_late 100");
    assert_int_equal(timer_count(&fixture), 0);
    watchdog_fixture_clear(&fixture);
}

static void a_release_asks_nobody(void **state) {
    (void)state;
    struct watchdog_fixture fixture;
    watchdog_fixture_init(&fixture, plain);
    watchdog_fixture_hold(&fixture, 100, "step", 5000, 9);
    char scope[] = "step";
    const struct watchdog_request release = {WATCHDOG_RELEASE, 100, scope, {0}, 0};
    assert_string_equal(
        watchdog_fixture_step(
            &fixture, (struct watchdog_event){.kind = WATCHDOG_EVENT_REQUEST, .request = &release}),
        "");
    assert_int_equal(timer_count(&fixture), 0);
    watchdog_fixture_clear(&fixture);
}

static void the_timers_of_a_process_end_with_it(void **state) {
    (void)state;
    struct watchdog_fixture fixture;
    watchdog_fixture_init(&fixture, plain);
    watchdog_fixture_hold(&fixture, 100, "step", 5000, 9);
    assert_string_equal(watchdog_fixture_happens_to(&fixture, WATCHDOG_EVENT_PROCESS_ENDED, 100),
        "ended 100, unwatch 100");
    assert_string_equal(
        watchdog_fixture_happens_to(&fixture, WATCHDOG_EVENT_PROCESS_ENDED, 100), "unwatch 100");
    watchdog_fixture_hold(&fixture, 101, "step", 5000, 9);
    assert_string_equal(
        watchdog_fixture_happens_to(&fixture, WATCHDOG_EVENT_FORGET, 101), "unwatch 101");
    assert_int_equal(timer_count(&fixture), 0);
    assert_string_equal(watchdog_fixture_ask(&fixture, 101, "step", 5000, 9), "look_up 101 asking");
    watchdog_fixture_clear(&fixture);
}

static void nobody_is_served_before_the_beginning_or_after_the_end(void **state) {
    (void)state;
    struct watchdog_fixture fixture;
    watchdog_fixture_init(&fixture, plain);
    watchdog_fixture_hold(&fixture, 100, "step", 5000, 9);
    assert_string_equal(watchdog_fixture_happens(&fixture, WATCHDOG_EVENT_END),
        "stopped, no_deadline, unwatch_all");
    assert_string_equal(watchdog_fixture_happens(&fixture, WATCHDOG_EVENT_END), "");
    assert_string_equal(watchdog_fixture_ask(&fixture, 100, "step", 5000, 9), "");
    assert_string_equal(watchdog_fixture_happens(&fixture, WATCHDOG_EVENT_BAD_LINE), "");
    assert_int_equal(timer_count(&fixture), 0);
    assert_int_equal(watchdog_machine_request_count(fixture.machine), 1);
    assert_string_equal(
        watchdog_fixture_happens(&fixture, WATCHDOG_EVENT_BEGIN), "no_timer, drop_input, started");
    assert_string_equal(watchdog_fixture_ask(&fixture, 100, "step", 5000, 9), "look_up 100 asking");
    watchdog_fixture_clear(&fixture);
}

static void whose_look_comes_after_the_end_gets_no_timer(void **state) {
    (void)state;
    struct watchdog_fixture fixture;
    watchdog_fixture_init(&fixture, plain);
    watchdog_fixture_ask(&fixture, 100, "step", 5000, 9);
    watchdog_fixture_see(&fixture, 100, 0);
    watchdog_fixture_happens(&fixture, WATCHDOG_EVENT_END);
    assert_string_equal(watchdog_fixture_watched(&fixture, true), "");
    assert_int_equal(timer_count(&fixture), 0);
    watchdog_fixture_clear(&fixture);
}

static void a_mistake_in_a_loop_is_told_a_few_times(void **state) {
    (void)state;
    struct watchdog_fixture fixture;
    const struct watchdog_event bad = {.kind = WATCHDOG_EVENT_BAD_LINE, .reason = "odd"};
    watchdog_fixture_init(&fixture, plain);
    fixture.now = 1000000;
    for (int i = 0; i < LOG_THROTTLE_BURST; i++) {
        assert_string_equal(watchdog_fixture_step(&fixture, bad), "bad_line odd held_back=0");
    }
    assert_string_equal(watchdog_fixture_step(&fixture, bad), "");
    watchdog_fixture_ask(&fixture, 100, "step", 5000, 9);
    assert_string_equal(watchdog_fixture_see(&fixture, 100, -1), "");
    fixture.now += 1000;
    assert_string_equal(watchdog_fixture_step(&fixture, bad), "bad_line odd held_back=2");
    watchdog_fixture_clear(&fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_timer_is_held_once_its_process_is_known_and_watched),
    cmocka_unit_test(a_burst_of_requests_costs_one_look),
    cmocka_unit_test(who_is_nobodys_gets_no_timer),
    cmocka_unit_test(who_has_ended_needs_no_timer),
    cmocka_unit_test(a_release_asks_nobody),
    cmocka_unit_test(the_timers_of_a_process_end_with_it),
    cmocka_unit_test(nobody_is_served_before_the_beginning_or_after_the_end),
    cmocka_unit_test(whose_look_comes_after_the_end_gets_no_timer),
    cmocka_unit_test(a_mistake_in_a_loop_is_told_a_few_times),
};

UNIT_TESTS(tests)
