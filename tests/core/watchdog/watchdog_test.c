/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <stdio.h>

#include "base/memory.h"
#include "core/watchdog/watchdog.h"

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

TEST(a_timer_expires_at_its_moment_and_not_before) {
    struct watchdog *watchdog = watchdog_new(&limits);
    struct wall_time deadline;
    assert_false(watchdog_next_deadline(watchdog, &deadline));
    acquire(watchdog, 7, "step", 50, 9);
    expect_deadline(watchdog, 50);
    expect_none(watchdog, 49);
    expect_expiry(watchdog, 50, 7, 9, "step");
    expect_none(watchdog, 99);
    assert_int_equal(watchdog_timer_count(watchdog), 0);
    watchdog_free(watchdog);
}

TEST(expired_timer_ends_only_its_process) {
    struct watchdog *watchdog = watchdog_new(&limits);
    acquire(watchdog, 7, "step", 50, 9);
    acquire(watchdog, 8, "step", 60, 15);
    expect_expiry(watchdog, 55, 7, 9, "step");
    expect_none(watchdog, 55);
    expect_deadline(watchdog, 60);
    watchdog_free(watchdog);
}

TEST(processes_expire_in_the_order_of_their_timers) {
    struct watchdog *watchdog = watchdog_new(&limits);
    acquire(watchdog, 7, "step", 60, 9);
    acquire(watchdog, 8, "step", 50, 15);
    expect_expiry(watchdog, 99, 8, 15, "step");
    expect_expiry(watchdog, 99, 7, 9, "step");
    expect_none(watchdog, 99);
    watchdog_free(watchdog);
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

TEST(the_first_expired_timer_with_a_signal_counts) {
    struct watchdog *watchdog = watchdog_new(&limits);
    acquire(watchdog, 7, "k", 53, 9);
    acquire(watchdog, 7, "later", 90, 9);
    acquire(watchdog, 7, "j", 52, 15);
    acquire(watchdog, 7, "i", 51, 0);
    expect_expiry(watchdog, 60, 7, 15, "i j");
    assert_int_equal(watchdog_timer_count(watchdog), 0);
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

TEST(an_exited_process_has_no_timers) {
    struct watchdog *watchdog = watchdog_new(&limits);
    acquire(watchdog, 7, "step", 50, 9);
    acquire(watchdog, 7, "other", 50, 9);
    acquire(watchdog, 8, "step", 60, 9);
    watchdog_forget(watchdog, 7);
    watchdog_forget(watchdog, 99);
    assert_int_equal(watchdog_timer_count(watchdog), 1);
    expect_expiry(watchdog, 70, 8, 9, "step");
    acquire(watchdog, 8, "step", 60, 9);
    watchdog_forget_all(watchdog);
    expect_none(watchdog, 99);
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
    uint64_t start_time = 0;
    assert_false(watchdog_find(watchdog, 7, &start_time));
    acquire(watchdog, 7, "a", 50, 9);
    acquire(watchdog, 7, "b", 20, 9);
    acquire(watchdog, 8, "a", 3, 9);
    watchdog_each(watchdog, add_up, &sum);
    assert_int_equal(sum, 22073);
    assert_true(watchdog_find(watchdog, 7, &start_time));
    assert_int_equal(start_time, 100);
    watchdog_free(watchdog);
}
