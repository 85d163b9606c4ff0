/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <time.h>

#include "host/loop/clock.h"

static void the_monotonic_clock_does_not_go_back(void **state) {
    (void)state;
    struct instant before = clock_now();
    assert_true(before.nanoseconds > 0);
    assert_false(instant_is_before(clock_now(), before));
}

static void the_wall_clock_is_the_systems(void **state) {
    (void)state;
    int64_t before = (int64_t)time(NULL) - 1; /* time() may lag behind by a tick */
    int64_t seconds = clock_wall_time().nanoseconds / NANOSECONDS_PER_SECOND;
    assert_true(seconds >= before);
    assert_true(seconds <= (int64_t)time(NULL) + 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_monotonic_clock_does_not_go_back),
    cmocka_unit_test(the_wall_clock_is_the_systems),
};

UNIT_TESTS(tests)
