/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/watchdog_fixture.h"

#include "base/log.h"
#include "core/watchdog/watchdog.h"

static size_t timer_count(const struct watchdog_fixture *fixture) {
    return watchdog_timer_count(watchdog_machine_timers(fixture->machine));
}

WATCHDOG_TEST(a_burst_of_requests_costs_one_look) {
    watchdog_fixture_hold(fixture, 100, "step", 5000, 9);
    assert_string_equal(watchdog_fixture_ask(fixture, 100, "later", 6000, 9), "");
    assert_string_equal(watchdog_fixture_ask(fixture, 100, "sooner", 4000, 9), "deadline 4000");
    fixture->now += KNOWN_PROCESSES_TRUST_MILLISECONDS;
    assert_string_equal(watchdog_fixture_ask(fixture, 100, "again", 7000, 9), "look_up 100 asking");
}

static const char *see_child(
    struct watchdog_fixture *fixture, uint64_t start_time, int64_t parent, int owner) {
    return watchdog_fixture_step(fixture, (struct watchdog_event){.kind = WATCHDOG_EVENT_SEEN,
                                              .seen = {true, start_time, parent, owner}});
}

TEST(an_owner_is_looked_for_up_to_the_first_process_and_to_a_limit) {
    struct watchdog_fixture fixture;
    watchdog_fixture_init(&fixture, (struct watchdog_settings){.maximum_ancestors = 2});
    watchdog_fixture_ask(&fixture, 50, "step", 5000, 9);
    assert_string_equal(see_child(&fixture, 5, 1, -1), "refused step");
    watchdog_fixture_ask(&fixture, 50, "step", 5000, 9);
    see_child(&fixture, 5, 40, -1);
    assert_string_equal(see_child(&fixture, 4, 30, -1), "look_up 30 asking");
    assert_string_equal(see_child(&fixture, 3, 20, -1), "refused step");
    watchdog_fixture_clear(&fixture);
    watchdog_fixture_init(&fixture, (struct watchdog_settings){.maximum_ancestors = 0});
    watchdog_fixture_ask(&fixture, 50, "step", 5000, 9);
    assert_string_equal(see_child(&fixture, 5, 40, -1), "refused step");
    watchdog_fixture_clear(&fixture);
}

WATCHDOG_TEST(an_ancestor_that_has_ended_leaves_a_process_without_an_owner) {
    watchdog_fixture_ask(fixture, 50, "step", 5000, 9);
    see_child(fixture, 5, 40, -1);
    assert_string_equal(watchdog_fixture_happens(fixture, WATCHDOG_EVENT_SEEN), "refused step");
}

WATCHDOG_TEST(who_is_nobodys_gets_no_timer) {
    watchdog_fixture_ask(fixture, 100, "step", 5000, 9);
    assert_string_equal(watchdog_fixture_see(fixture, 100, -1), "refused step");
    assert_int_equal(timer_count(fixture), 0);
    assert_int_equal(watchdog_machine_request_count(fixture->machine), 1);
}

WATCHDOG_TEST(who_has_ended_needs_no_timer) {
    watchdog_fixture_ask(fixture, 100, "step", 5000, 9);
    assert_string_equal(watchdog_fixture_happens(fixture, WATCHDOG_EVENT_SEEN), "too_late 100");
    watchdog_fixture_ask(fixture, 100, "step", 5000, 9);
    watchdog_fixture_see(fixture, 100, 0);
    assert_string_equal(watchdog_fixture_watched(fixture, false), "too_late 100");
    assert_int_equal(timer_count(fixture), 0);
}

WATCHDOG_TEST(a_release_asks_nobody) {
    watchdog_fixture_hold(fixture, 100, "step", 5000, 9);
    char scope[] = "step";
    const struct watchdog_request release = {WATCHDOG_RELEASE, 100, scope, {0}, 0};
    assert_string_equal(
        watchdog_fixture_step(
            fixture, (struct watchdog_event){.kind = WATCHDOG_EVENT_REQUEST, .request = &release}),
        "");
    assert_int_equal(timer_count(fixture), 0);
}

WATCHDOG_TEST(the_timers_of_a_process_end_with_it) {
    watchdog_fixture_hold(fixture, 100, "step", 5000, 9);
    assert_string_equal(watchdog_fixture_happens_to(fixture, WATCHDOG_EVENT_PROCESS_ENDED, 100),
        "ended 100, unwatch 100");
    assert_string_equal(
        watchdog_fixture_happens_to(fixture, WATCHDOG_EVENT_PROCESS_ENDED, 100), "unwatch 100");
    watchdog_fixture_hold(fixture, 101, "step", 5000, 9);
    assert_string_equal(
        watchdog_fixture_happens_to(fixture, WATCHDOG_EVENT_FORGET, 101), "unwatch 101");
    assert_int_equal(timer_count(fixture), 0);
    assert_string_equal(watchdog_fixture_ask(fixture, 101, "step", 5000, 9), "look_up 101 asking");
}

WATCHDOG_TEST(nobody_is_served_before_the_beginning_or_after_the_end) {
    watchdog_fixture_hold(fixture, 100, "step", 5000, 9);
    assert_string_equal(
        watchdog_fixture_happens(fixture, WATCHDOG_EVENT_END), "stopped, no_deadline, unwatch_all");
    assert_string_equal(watchdog_fixture_happens(fixture, WATCHDOG_EVENT_END), "");
    assert_string_equal(watchdog_fixture_ask(fixture, 100, "step", 5000, 9), "");
    assert_string_equal(watchdog_fixture_happens(fixture, WATCHDOG_EVENT_BAD_LINE), "");
    assert_int_equal(timer_count(fixture), 0);
    assert_int_equal(watchdog_machine_request_count(fixture->machine), 1);
    assert_string_equal(
        watchdog_fixture_happens(fixture, WATCHDOG_EVENT_BEGIN), "no_timer, drop_input, started");
    assert_string_equal(watchdog_fixture_ask(fixture, 100, "step", 5000, 9), "look_up 100 asking");
}

WATCHDOG_TEST(whose_look_comes_after_the_end_gets_no_timer) {
    watchdog_fixture_ask(fixture, 100, "step", 5000, 9);
    watchdog_fixture_see(fixture, 100, 0);
    watchdog_fixture_happens(fixture, WATCHDOG_EVENT_END);
    assert_string_equal(watchdog_fixture_watched(fixture, true), "");
    assert_int_equal(timer_count(fixture), 0);
}

WATCHDOG_TEST(a_mistake_in_a_loop_is_told_a_few_times) {
    const struct watchdog_event bad = {.kind = WATCHDOG_EVENT_BAD_LINE, .reason = "odd"};
    fixture->now = 1000000;
    for (int i = 0; i < LOG_THROTTLE_BURST; i++) {
        assert_string_equal(watchdog_fixture_step(fixture, bad), "bad_line odd held_back=0");
    }
    assert_string_equal(watchdog_fixture_step(fixture, bad), "");
    watchdog_fixture_ask(fixture, 100, "step", 5000, 9);
    assert_string_equal(watchdog_fixture_see(fixture, 100, -1), "");
    fixture->now += 1000;
    assert_string_equal(watchdog_fixture_step(fixture, bad), "bad_line odd held_back=2");
}
