/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "host/process/guardian.h"

#define PATIENCE_MILLISECONDS 1600

static struct instant at(int64_t milliseconds) {
    return (struct instant){milliseconds * NANOSECONDS_PER_MILLISECOND};
}

/* Looks every 100 ms; the first look at which the fence closes, or `until`. */
static int64_t look_until(struct guardian_fence *fence, int64_t from, int64_t until) {
    for (int64_t time = from; time < until; time += 100) {
        if (guardian_fence_look(fence, at(time))) {
            return time;
        }
    }
    return until;
}

static void set_up(struct guardian_fence *fence) {
    *fence = (struct guardian_fence){0};
    guardian_fence_hear(fence, duration_from_milliseconds(PATIENCE_MILLISECONDS), at(0));
}

static void fence_closes_when_the_agent_was_silent_for_too_long(void **state) {
    (void)state;
    struct guardian_fence fence;
    set_up(&fence);
    assert_int_equal(look_until(&fence, 0, 10000), PATIENCE_MILLISECONDS);
    assert_true(fence.is_closed);
    assert_int_equal(guardian_fence_pause(&fence), -1);
    assert_false(guardian_fence_look(&fence, at(20000))); /* once */
}

static void each_word_of_the_agent_begins_anew(void **state) {
    (void)state;
    struct guardian_fence fence;
    set_up(&fence);
    assert_int_equal(look_until(&fence, 0, 1500), 1500);
    guardian_fence_hear(&fence, fence.patience, at(1500));
    assert_int_equal(look_until(&fence, 1500, 3000), 3000);
    guardian_fence_hear(&fence, (struct duration){0}, at(3000)); /* it may be silent from now on */
    assert_int_equal(look_until(&fence, 3000, 30000), 30000);
    assert_int_equal(guardian_fence_pause(&fence), -1);
}

static void time_in_which_nobody_looked_does_not_count(void **state) {
    (void)state;
    struct guardian_fence fence;
    set_up(&fence);
    assert_false(guardian_fence_look(&fence, at(100)));
    assert_false(guardian_fence_look(&fence, at(3600000))); /* the machine slept for an hour */
    assert_true(look_until(&fence, 3600000, 3610000) >= 3600000 + PATIENCE_MILLISECONDS / 2);
}

/* As the guardian looks: how often until the fence closes, and when. */
static void silence_is_looked_at_more_closely_the_longer_it_lasts(void **state) {
    (void)state;
    struct guardian_fence fence;
    set_up(&fence);
    assert_int_equal(guardian_fence_pause(&fence), PATIENCE_MILLISECONDS / 4);
    guardian_fence_hear(&fence, fence.patience, at(390));
    assert_false(guardian_fence_look(&fence, at(400))); /* the agent speaks: a look is enough */
    assert_int_equal(guardian_fence_pause(&fence), PATIENCE_MILLISECONDS / 4);
    int64_t time = 400;
    int looks = 0;
    while (!fence.is_closed && looks < 100) {
        time += guardian_fence_pause(&fence);
        (void)guardian_fence_look(&fence, at(time));
        looks++;
    }
    assert_int_equal(time, 390 + PATIENCE_MILLISECONDS); /* neither early nor late */
    assert_in_range(looks, 4, 20);
}

static void fence_opens_when_the_agent_knows_of_it(void **state) {
    (void)state;
    struct guardian_fence fence;
    set_up(&fence);
    look_until(&fence, 0, 10000);
    guardian_fence_hear(&fence, fence.patience, at(10000));
    assert_true(fence.is_closed);
    guardian_fence_open(&fence, at(11000));
    assert_false(fence.is_closed);
    assert_int_equal(look_until(&fence, 11000, 20000), 11000 + PATIENCE_MILLISECONDS);
}

static void a_zeroed_fence_never_closes(void **state) {
    (void)state;
    struct guardian_fence fence = {0};
    assert_int_equal(look_until(&fence, 0, 10000), 10000);
    assert_int_equal(guardian_fence_pause(&fence), -1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(fence_closes_when_the_agent_was_silent_for_too_long),
    cmocka_unit_test(each_word_of_the_agent_begins_anew),
    cmocka_unit_test(time_in_which_nobody_looked_does_not_count),
    cmocka_unit_test(silence_is_looked_at_more_closely_the_longer_it_lasts),
    cmocka_unit_test(fence_opens_when_the_agent_knows_of_it),
    cmocka_unit_test(a_zeroed_fence_never_closes),
};

UNIT_TESTS(tests)
