/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <stdio.h>

#include "base/memory.h"
#include "core/watchdog/watchdog.h"
#include "core/watchdog_fixture.h"

static const struct watchdog_limits limits = {
    .timers = 2000, .timers_per_process = 1000, .scope_bytes = 16384};
static const struct watchdog_process ours = {.is_ours = true, .start_time = 100};
static const struct watchdog_process foreign = {.is_ours = false};

static struct wall_time at(int64_t seconds) {
    return (struct wall_time){seconds * 1000000000};
}

static enum failure_code take(struct watchdog *watchdog, struct watchdog_request request,
    const char *scope, const struct watchdog_process *process) {
    request.scope = memory_duplicate_string(scope);
    enum failure_code code = watchdog_take(watchdog, &request, process);
    watchdog_request_clear(&request);
    return code;
}

static struct watchdog_request timer(int64_t pid, int64_t seconds, int signal) {
    return (struct watchdog_request){
        .kind = WATCHDOG_ACQUIRE, .pid = pid, .expiration = at(seconds), .signal = signal};
}

static void acquire(
    struct watchdog *watchdog, int64_t pid, const char *scope, int64_t seconds, int signal) {
    assert_int_equal(take(watchdog, timer(pid, seconds, signal), scope, &ours), FAILURE_NONE);
}

static void release(struct watchdog *watchdog, int64_t pid, const char *scope) {
    const struct watchdog_request request = {.kind = WATCHDOG_RELEASE, .pid = pid};
    assert_int_equal(take(watchdog, request, scope, &foreign), FAILURE_NONE);
}

static void expect_deadline(const struct watchdog *watchdog, int64_t seconds) {
    struct wall_time deadline;
    assert_true(watchdog_next_deadline(watchdog, &deadline));
    assert_int_equal(deadline.nanoseconds, at(seconds).nanoseconds);
}

/* `scopes` are separated by blanks. */
static void expect_expiry(
    struct watchdog *watchdog, int64_t now, int64_t pid, int signal, const char *scopes) {
    struct watchdog_expiry expiry;
    CLEARED_BY(text_clear) struct text joined = {0};
    assert_true(watchdog_take_expired(watchdog, at(now), &expiry));
    assert_int_equal(expiry.pid, pid);
    assert_int_equal(expiry.signal, signal);
    for (size_t i = 0; i < expiry.scopes.count; i++) {
        text_append_format(&joined, i == 0 ? "%s" : " %s", expiry.scopes.items[i]);
    }
    assert_string_equal(text_string(&joined), scopes);
    watchdog_expiry_clear(&expiry);
}

static void expect_none(struct watchdog *watchdog, int64_t now) {
    struct watchdog_expiry expiry;
    assert_false(watchdog_take_expired(watchdog, at(now), &expiry));
}

TEST(acquiring_again_replaces_the_timer) {
    struct watchdog *watchdog = watchdog_new(&limits);
    acquire(watchdog, 7, "step", 50, 9);
    acquire(watchdog, 7, "other", 70, 9);
    acquire(watchdog, 7, "step", 90, 15);
    assert_int_equal(watchdog_timer_count(watchdog), 2);
    expect_none(watchdog, 60);
    acquire(watchdog, 7, "other", 95, 9);
    expect_deadline(watchdog, 90);
    expect_expiry(watchdog, 90, 7, 15, "step");
    watchdog_free(watchdog);
}

TEST(a_released_timer_never_expires) {
    struct watchdog *watchdog = watchdog_new(&limits);
    acquire(watchdog, 7, "step", 50, 9);
    acquire(watchdog, 7, "other", 60, 9);
    release(watchdog, 7, "step");
    expect_none(watchdog, 59);
    release(watchdog, 7, "other");
    assert_int_equal(watchdog_timer_count(watchdog), 0);
    expect_none(watchdog, 99);
    watchdog_free(watchdog);
}

TEST(releasing_what_nobody_holds_is_fine) {
    struct watchdog *watchdog = watchdog_new(&limits);
    release(watchdog, 7, "step");
    acquire(watchdog, 7, "step", 50, 9);
    release(watchdog, 7, "other");
    release(watchdog, 8, "step");
    assert_int_equal(watchdog_timer_count(watchdog), 1);
    watchdog_free(watchdog);
}

TEST(without_a_signal_expired_timers_are_only_dropped) {
    struct watchdog *watchdog = watchdog_new(&limits);
    acquire(watchdog, 7, "i", 51, 0);
    acquire(watchdog, 7, "j", 52, -1);
    acquire(watchdog, 7, "later", 90, 9);
    expect_expiry(watchdog, 60, 7, 0, "i j");
    expect_none(watchdog, 60);
    expect_expiry(watchdog, 90, 7, 9, "later");
    watchdog_free(watchdog);
}

TEST(a_process_that_could_not_be_signalled_expires_again) {
    struct watchdog *watchdog = watchdog_new(&limits);
    struct watchdog_expiry expiry;
    acquire(watchdog, 7, "quiet", 40, 0);
    acquire(watchdog, 7, "step", 50, 15);
    assert_true(watchdog_take_expired(watchdog, at(50), &expiry));
    watchdog_retry(watchdog, &expiry, at(51));
    expect_none(watchdog, 50);
    expect_expiry(watchdog, 51, 7, 15, "step");
    acquire(watchdog, 7, "new", 90, 9);
    watchdog_retry(watchdog, &expiry, at(51));
    expect_none(watchdog, 51);
    watchdog_expiry_clear(&expiry);
    watchdog_free(watchdog);
}

TEST(a_later_process_of_the_same_pid_inherits_no_timer) {
    struct watchdog *watchdog = watchdog_new(&limits);
    const struct watchdog_process later = {.is_ours = true, .start_time = 200};
    struct watchdog_expiry expiry;
    acquire(watchdog, 7, "step", 50, 9);
    assert_int_equal(take(watchdog, timer(7, 60, 9), "other", &later), FAILURE_NONE);
    assert_int_equal(watchdog_timer_count(watchdog), 1);
    assert_true(watchdog_take_expired(watchdog, at(60), &expiry));
    assert_int_equal(expiry.start_time, 200);
    watchdog_expiry_clear(&expiry);
    watchdog_free(watchdog);
}

TEST(strangers_get_no_timer) {
    struct watchdog *watchdog = watchdog_new(&limits);
    assert_int_equal(take(watchdog, timer(1, 50, 9), "step", &foreign), FAILURE_INVALID);
    assert_int_equal(watchdog_timer_count(watchdog), 0);
    watchdog_free(watchdog);
}

TEST(a_process_can_hold_only_so_many_timers) {
    struct watchdog *watchdog = watchdog_new(&limits);
    char scope[16];
    for (int i = 0; i < (int)limits.timers_per_process; i++) {
        (void)snprintf(scope, sizeof scope, "%d", i);
        acquire(watchdog, 7, scope, 50, 9);
    }
    assert_int_equal(take(watchdog, timer(7, 50, 9), "more", &ours), FAILURE_LIMIT);
    acquire(watchdog, 7, "0", 60, 9);
    acquire(watchdog, 8, "more", 50, 9);
    release(watchdog, 7, "1");
    acquire(watchdog, 7, "more", 50, 9);
    watchdog_free(watchdog);
}

TEST(all_together_can_hold_only_so_many_timers) {
    struct watchdog *watchdog = watchdog_new(&limits);
    for (int64_t pid = 1; pid <= (int)limits.timers; pid++) {
        acquire(watchdog, pid, "step", 50, 9);
    }
    assert_int_equal(take(watchdog, timer(1, 50, 9), "more", &ours), FAILURE_LIMIT);
    assert_int_equal(
        take(watchdog, timer((int)limits.timers + 1, 50, 9), "step", &ours), FAILURE_LIMIT);
    assert_int_equal(watchdog_timer_count(watchdog), (int)limits.timers);
    watchdog_free(watchdog);
}

TEST(scopes_together_can_be_only_so_long) {
    const struct watchdog_limits few_bytes = {
        .timers = 10, .timers_per_process = 10, .scope_bytes = 10};
    struct watchdog *watchdog = watchdog_new(&few_bytes);
    acquire(watchdog, 7, "four", 50, 9);
    assert_int_equal(take(watchdog, timer(8, 50, 9), "fiveX", &ours), FAILURE_LIMIT);
    acquire(watchdog, 8, "more", 50, 9);
    watchdog_forget(watchdog, 7);
    acquire(watchdog, 9, "four", 50, 9);
    watchdog_free(watchdog);
}

static void add_up(void *context, const struct watchdog_request *timer) {
    int64_t *sum = context;
    *sum += timer->pid * 1000 + timer->expiration.nanoseconds / 1000000000;
}

TEST(every_timer_is_shown) {
    struct watchdog *watchdog = watchdog_new(&limits);
    int64_t sum = 0;
    acquire(watchdog, 7, "a", 50, 9);
    acquire(watchdog, 7, "b", 20, 9);
    acquire(watchdog, 8, "a", 3, 9);
    watchdog_each(watchdog, add_up, &sum);
    assert_int_equal(sum, 22073);
    watchdog_free(watchdog);
}

/* Watchdog endings. */

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

WATCHDOG_TEST(all_that_have_expired_are_seen_to_one_after_the_other) {
    watchdog_fixture_hold(fixture, 100, "step", 5000, 9);
    watchdog_fixture_hold(fixture, 101, "epoch", 5001, 9);
    assert_string_equal(expire(fixture, 5001), "look_up 100");
    watchdog_fixture_see(fixture, 100, 0);
    assert_string_equal(watchdog_fixture_signalled(fixture, WATCHDOG_SIGNAL_SENT),
        "signalled 100:step rank=0, look_up 101");
    watchdog_fixture_see(fixture, 101, 1);
    assert_string_equal(watchdog_fixture_signalled(fixture, WATCHDOG_SIGNAL_NOBODY), "");
}

WATCHDOG_TEST(another_process_with_the_same_pid_is_left_alone) {
    watchdog_fixture_hold(fixture, 100, "step", 5000, 9);
    expire(fixture, 5000);
    assert_string_equal(watchdog_fixture_see(fixture, 77, 0), "gone 100");
    watchdog_fixture_hold(fixture, 100, "step", 6000, 9);
    expire(fixture, 6000);
    assert_string_equal(watchdog_fixture_see(fixture, 100, -1), "gone 100");
    watchdog_fixture_hold(fixture, 100, "step", 7000, 9);
    expire(fixture, 7000);
    assert_string_equal(watchdog_fixture_happens(fixture, WATCHDOG_EVENT_SEEN), "gone 100");
}

WATCHDOG_TEST_AFTER(
    a_timer_without_a_signal_is_only_told, watchdog_fixture_init(&fixture, looking)) {
    watchdog_fixture_hold(fixture, 100, "step", 5000, 0);
    expire(fixture, 5000);
    assert_string_equal(watchdog_fixture_see(fixture, 100, 0), "lives_on 100, expired 100:step");
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

WATCHDOG_TEST(who_must_not_be_signalled_is_tried_again_in_a_second) {
    watchdog_fixture_hold(fixture, 100, "step", 5000, 9);
    expire(fixture, 5000);
    watchdog_fixture_see(fixture, 100, 0);
    assert_string_equal(watchdog_fixture_signalled(fixture, WATCHDOG_SIGNAL_REFUSED),
        "untouched 100, deadline 6000");
    fixture->now = 5500;
    assert_int_equal(last_progress(fixture), 5000);
    assert_string_equal(expire(fixture, 6000), "look_up 100");
    watchdog_fixture_see(fixture, 100, 0);
    watchdog_fixture_signalled(fixture, WATCHDOG_SIGNAL_REFUSED);
    assert_int_equal(last_progress(fixture), 5000);
    expire(fixture, 7000);
    watchdog_fixture_see(fixture, 100, 0);
    watchdog_fixture_signalled(fixture, WATCHDOG_SIGNAL_SENT);
    assert_int_equal(last_progress(fixture), 7000);
}

WATCHDOG_TEST(who_goes_on_is_overdue_no_more) {
    watchdog_fixture_hold(fixture, 100, "step", 5000, 9);
    expire(fixture, 5000);
    watchdog_fixture_see(fixture, 100, 0);
    watchdog_fixture_signalled(fixture, WATCHDOG_SIGNAL_REFUSED);
    watchdog_fixture_hold(fixture, 100, "next", 9000, 9);
    fixture->now = 5500;
    assert_int_equal(last_progress(fixture), 5500);
}

WATCHDOG_TEST(a_timer_that_nobody_has_seen_to_is_no_progress) {
    watchdog_fixture_hold(fixture, 100, "step", 5000, 9);
    assert_int_equal(last_progress(fixture), 1000);
    fixture->now = 5400;
    assert_int_equal(last_progress(fixture), 5000);
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

WATCHDOG_TEST_AFTER(all_are_looked_at_before_one_is_ended, look_at_two(&fixture, looking)) {
    assert_int_equal(last_progress(fixture), 5000);
    assert_string_equal(watchdog_fixture_happens(fixture, WATCHDOG_EVENT_LOOKED_AT), "no_timer");
    assert_string_equal(watchdog_fixture_happens(fixture, WATCHDOG_EVENT_LOOKED_AT), "timer 0");
    assert_string_equal(fire(fixture, 5101), "look_up 101");
    assert_string_equal(watchdog_fixture_see(fixture, 101, 1), "signal 101/101 9");
    assert_string_equal(watchdog_fixture_signalled(fixture, WATCHDOG_SIGNAL_SENT),
        "signalled 101:step rank=1, look_up 100");
    watchdog_fixture_see(fixture, 100, 0);
    assert_string_equal(watchdog_fixture_signalled(fixture, WATCHDOG_SIGNAL_SENT),
        "signalled 100:step rank=0, looks_over, no_timer");
    assert_int_equal(last_progress(fixture), 5101);
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

WATCHDOG_TEST_AFTER(
    whoever_expires_a_moment_later_is_waited_for, watchdog_fixture_init(&fixture, looking)) {
    watchdog_fixture_hold(fixture, 100, "step", 5000, 9);
    watchdog_fixture_hold(fixture, 101, "step", 5200, 9);
    expire(fixture, 5000);
    watchdog_fixture_see(fixture, 100, 0);
    assert_string_equal(watchdog_fixture_happens(fixture, WATCHDOG_EVENT_LOOKED_AT), "timer 5250");
    expire(fixture, 5200);
    assert_string_equal(
        watchdog_fixture_see(fixture, 101, 1), "no_timer, look 101:step rank=1 bound=1800");
    assert_string_equal(watchdog_fixture_happens(fixture, WATCHDOG_EVENT_LOOKED_AT), "timer 0");
}

/* The window begins with the first look, and a timer at its end is not in it. */
TEST_OF(watchdog_fixture, nobody_is_waited_for_longer_than_the_window,
    watchdog_fixture_init(&fixture, looking), watchdog_fixture_clear) {
    watchdog_fixture_hold(fixture, 100, "step", 5000, 9);
    watchdog_fixture_hold(fixture, 101, "step", 5250, 9);
    expire(fixture, 5000);
    watchdog_fixture_see(fixture, 100, 0);
    assert_string_equal(watchdog_fixture_happens(fixture, WATCHDOG_EVENT_LOOKED_AT), "timer 0");
    watchdog_fixture_clear(fixture);
    watchdog_fixture_init(fixture, looking);
    watchdog_fixture_hold(fixture, 100, "step", 5000, 9);
    watchdog_fixture_hold(fixture, 101, "step", 5249, 9);
    expire(fixture, 5000);
    watchdog_fixture_see(fixture, 100, 0);
    assert_string_equal(watchdog_fixture_happens(fixture, WATCHDOG_EVENT_LOOKED_AT), "timer 5250");
    assert_string_equal(fire(fixture, 5250), "look_up 100");
}

WATCHDOG_TEST_AFTER(who_was_looked_at_and_must_not_be_signalled_is_tried_again_alone,
    look_at_two(&fixture, looking)) {
    watchdog_fixture_happens(fixture, WATCHDOG_EVENT_LOOKED_AT);
    watchdog_fixture_happens(fixture, WATCHDOG_EVENT_LOOKED_AT);
    fire(fixture, 5101);
    watchdog_fixture_see(fixture, 101, 1);
    assert_string_equal(
        watchdog_fixture_signalled(fixture, WATCHDOG_SIGNAL_REFUSED), "untouched 101, look_up 100");
    watchdog_fixture_see(fixture, 100, 0);
    assert_string_equal(watchdog_fixture_signalled(fixture, WATCHDOG_SIGNAL_SENT),
        "signalled 100:step rank=0, looks_over, timer 6101");
    assert_int_equal(last_progress(fixture), 5100);
    assert_string_equal(fire(fixture, 6100), "timer 6101");
    assert_string_equal(fire(fixture, 6101), "look_up 101");
    watchdog_fixture_see(fixture, 101, 1);
    assert_string_equal(watchdog_fixture_signalled(fixture, WATCHDOG_SIGNAL_SENT),
        "signalled 101:step rank=1, no_timer");
}

WATCHDOG_TEST_AFTER(nobody_is_ended_once_the_group_is_stopped, look_at_two(&fixture, looking)) {
    watchdog_fixture_happens(fixture, WATCHDOG_EVENT_END);
    assert_int_equal(last_progress(fixture), 5100);
    watchdog_fixture_happens(fixture, WATCHDOG_EVENT_LOOKED_AT);
    assert_string_equal(watchdog_fixture_happens(fixture, WATCHDOG_EVENT_LOOKED_AT), "timer 0");
    assert_string_equal(fire(fixture, 5101), "looks_over, no_timer");
}

WATCHDOG_TEST_AFTER(
    who_was_looked_at_before_another_beginning_is_forgotten, look_at_two(&fixture, looking)) {
    watchdog_fixture_happens(fixture, WATCHDOG_EVENT_LOOKED_AT);
    watchdog_fixture_happens(fixture, WATCHDOG_EVENT_END);
    watchdog_fixture_happens(fixture, WATCHDOG_EVENT_BEGIN);
    assert_string_equal(watchdog_fixture_happens(fixture, WATCHDOG_EVENT_LOOKED_AT), "");
    assert_string_equal(fire(fixture, 5101), "no_timer");
}
