/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "host/loop/event_loop.h"

struct fixture {
    struct event_loop *loop;
    struct wall_timer *timer;
    struct event_timer *ender;
    struct wall_time fired_at;
    int fired;
    bool frees_itself;
};

static void fired(void *context) {
    struct fixture *fixture = context;
    fixture->fired++;
    fixture->fired_at = event_loop_wall_time(fixture->loop);
    if (fixture->frees_itself) {
        wall_timer_free(fixture->timer);
        fixture->timer = NULL;
    }
    event_loop_stop(fixture->loop);
}

static void ended(void *context) {
    event_loop_stop(context);
}

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){0};
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    fixture->ender = event_timer_new(fixture->loop, ended, fixture->loop);
    assert_int_equal(
        wall_timer_new(fixture->loop, fired, fixture, &fixture->timer, NULL), FAILURE_NONE);
}

static void tear_down(struct fixture *fixture) {
    wall_timer_free(fixture->timer);
    event_timer_free(fixture->ender);
    assert_true(event_loop_free(fixture->loop));
}

static struct wall_time in(const struct fixture *fixture, int64_t milliseconds) {
    int64_t now = event_loop_wall_time(fixture->loop).nanoseconds;
    return (struct wall_time){now + milliseconds * 1000000};
}

/* Runs until everything that could still fire has had its time. */
static void run_beyond(struct fixture *fixture, int64_t milliseconds) {
    event_timer_set(fixture->ender,
        instant_after(event_loop_now(fixture->loop), duration_from_milliseconds(milliseconds)));
    event_loop_run(fixture->loop);
}

FIXTURE_TEST(it_fires_once_and_not_early) {
    struct wall_time when = in(fixture, 5);
    wall_timer_set(fixture->timer, when);
    event_loop_run(fixture->loop);
    assert_true(fixture->fired_at.nanoseconds >= when.nanoseconds);
    run_beyond(fixture, 20);
    assert_int_equal(fixture->fired, 1);
}

FIXTURE_TEST(times_that_have_passed_fire_at_once) {
    static const int64_t passed[] = {1500000000123456789, 1, 0, -1, INT64_MIN};
    for (size_t i = 0; i < sizeof passed / sizeof *passed; i++) {
        wall_timer_set(fixture->timer, (struct wall_time){passed[i]});
        event_loop_run(fixture->loop);
        assert_int_equal(fixture->fired, i + 1);
    }
}

FIXTURE_TEST(a_new_setting_replaces_the_old) {
    wall_timer_set(fixture->timer, in(fixture, 3600 * 1000));
    struct wall_time when = in(fixture, 5);
    wall_timer_set(fixture->timer, when);
    event_loop_run(fixture->loop);
    assert_int_equal(fixture->fired, 1);
    wall_timer_set(fixture->timer, in(fixture, 1));
    wall_timer_set(fixture->timer, (struct wall_time){INT64_MAX});
    run_beyond(fixture, 20);
    assert_int_equal(fixture->fired, 1);
}

/* The time of the timer passes before the loop runs again, as when another callback takes long. */
FIXTURE_TEST(one_that_is_stopped_or_set_anew_in_time_does_not_fire) {
    wall_timer_set(fixture->timer, (struct wall_time){1});
    wall_timer_stop(fixture->timer);
    run_beyond(fixture, 5);
    wall_timer_set(fixture->timer, (struct wall_time){1});
    wall_timer_set(fixture->timer, in(fixture, 3600 * 1000));
    run_beyond(fixture, 5);
    assert_int_equal(fixture->fired, 0);
}

FIXTURE_TEST(it_may_be_freed_when_it_fires) {
    fixture->frees_itself = true;
    wall_timer_set(fixture->timer, in(fixture, 0));
    event_loop_run(fixture->loop);
    assert_int_equal(fixture->fired, 1);
    assert_null(fixture->timer);
}
