/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <unistd.h>

#include "host/loop/event_loop.h"

struct fixture {
    struct event_loop *loop;
    struct event_timer *timer;
    int calls;
    struct instant seen;
};

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){0};
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
}

static void note_and_stop(void *context) {
    struct fixture *fixture = context;
    fixture->calls++;
    fixture->seen = event_loop_now(fixture->loop);
    event_loop_stop(fixture->loop);
}

static void free_timer_and_note(void *context) {
    struct fixture *fixture = context;
    fixture->calls++;
    event_timer_free(fixture->timer);
}

static void do_nothing(void *context) {
    (void)context;
}

TEST(timer_never_fires_early) {
    struct fixture fixture;
    set_up(&fixture);
    struct event_timer *timer = event_timer_new(fixture.loop, note_and_stop, &fixture);
    struct event_timer *interruption = event_timer_new(fixture.loop, do_nothing, NULL);
    for (int i = 1; i <= 50; i++) { /* each time at another fraction of libuv's milliseconds */
        struct instant now = event_loop_now(fixture.loop);
        struct instant when = instant_after(now, (struct duration){3000000});
        event_timer_set(timer, when);
        event_timer_set(interruption, instant_after(now, (struct duration){10000 * i}));
        event_loop_run(fixture.loop);
        assert_int_equal(fixture.calls, i);
        assert_false(instant_is_before(fixture.seen, when));
    }
    event_timer_free(interruption);
    event_timer_free(timer);
    assert_true(event_loop_free(fixture.loop));
}

TEST(timers_that_may_come_early_come_together) {
    struct fixture fixture;
    set_up(&fixture);
    struct event_timer *one = event_timer_new(fixture.loop, note_and_stop, &fixture);
    struct event_timer *other = event_timer_new(fixture.loop, note_and_stop, &fixture);
    struct instant now = event_loop_now(fixture.loop);
    struct duration second = duration_from_seconds(1);
    event_timer_set_between(one, now, instant_after(now, second));
    event_timer_set_between(
        other, instant_after(now, (struct duration){1}), instant_after(now, second));
    event_loop_run(fixture.loop); /* one turn for both */
    assert_int_equal(fixture.calls, 2);
    /* Nothing is shared in so short a time: then it is the earliest. */
    now = event_loop_now(fixture.loop);
    event_timer_set_between(one, now, now);
    event_loop_run(fixture.loop);
    assert_int_equal(fixture.calls, 3);
    event_timer_free(one);
    event_timer_free(other);
    assert_true(event_loop_free(fixture.loop));
}

TEST(timer_may_be_freed_in_its_own_callback) {
    struct fixture fixture;
    set_up(&fixture);
    fixture.timer = event_timer_new(fixture.loop, free_timer_and_note, &fixture);
    event_timer_set(fixture.timer, event_loop_now(fixture.loop));
    event_loop_run(fixture.loop);
    assert_int_equal(fixture.calls, 1);
    assert_true(event_loop_free(fixture.loop));
}

TEST(stopped_timer_does_not_fire) {
    struct fixture fixture;
    set_up(&fixture);
    struct event_timer *timer = event_timer_new(fixture.loop, note_and_stop, &fixture);
    event_timer_set(timer, event_loop_now(fixture.loop));
    event_timer_stop(timer);
    event_loop_run(fixture.loop);
    assert_int_equal(fixture.calls, 0);
    event_timer_free(timer);
    assert_true(event_loop_free(fixture.loop));
}

TEST(readable_descriptor_calls_its_owner) {
    struct fixture fixture;
    set_up(&fixture);
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    struct event_descriptor *descriptor;
    assert_int_equal(
        event_descriptor_new(fixture.loop, ends[0], note_and_stop, &fixture, &descriptor, NULL),
        FAILURE_NONE);
    assert_int_equal(write(ends[1], "x", 1), 1);
    event_loop_run(fixture.loop);
    assert_int_equal(fixture.calls, 1);
    event_descriptor_free(descriptor);
    assert_true(event_loop_free(fixture.loop));
    close(ends[0]);
    close(ends[1]);
}

TEST(sends_before_the_loop_comes_around_are_one_call) {
    struct fixture fixture;
    set_up(&fixture);
    struct event_wake *wake;
    assert_int_equal(
        event_wake_new(fixture.loop, note_and_stop, &fixture, &wake, NULL), FAILURE_NONE);
    event_wake_send(wake);
    event_wake_send(wake);
    event_loop_run(fixture.loop);
    assert_int_equal(fixture.calls, 1);
    event_wake_free(wake);
    assert_true(event_loop_free(fixture.loop));
}

TEST(loop_can_be_freed_after_a_stop_that_came_too_late) {
    struct fixture fixture;
    set_up(&fixture);
    struct event_timer *timer = event_timer_new(fixture.loop, note_and_stop, &fixture);
    event_loop_stop(fixture.loop);
    event_timer_free(timer);
    assert_true(event_loop_free(fixture.loop));
}
