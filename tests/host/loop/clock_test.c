/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <stdlib.h>
#include <time.h>

#include "host/loop/clock.h"

TEST(the_monotonic_clock_does_not_go_back) {
    struct instant before = clock_now();
    assert_true(before.nanoseconds > 0);
    assert_false(instant_is_before(clock_now(), before));
}

TEST(the_wall_clock_is_the_systems) {
    int64_t before = (int64_t)time(NULL) - 1; /* time() may lag behind by a tick */
    int64_t seconds = clock_wall_time().nanoseconds / NANOSECONDS_PER_SECOND;
    assert_true(seconds >= before);
    assert_true(seconds <= (int64_t)time(NULL) + 1);
}

/* Changes in both halves of the world, by half an hour, backwards in winter, and none. */
TEST(a_zone_that_is_kept_says_what_libc_says) {
    static const char *const zones[] = {"UTC0", "EST5EDT,M3.2.0,M11.1.0", "<+0545>-5:45",
        "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0", "IST-1GMT0,M10.5.0,M3.5.0/1",
        "NZST-12NZDT,M9.5.0,M4.1.0/3"};
    for (size_t i = 0; i < sizeof zones / sizeof *zones; i++) {
        struct clock_zone zone;
        setenv("TZ", zones[i], 1);
        tzset();
        clock_zone_learn(&zone);
        clock_zone_keep(&zone);
        time_t begin = time(NULL);
        for (time_t moment = begin; moment < begin + 720 * 86400; moment += 1801) {
            struct tm told;
            localtime_r(&moment, &told);
            struct tm found = clock_local_time((int64_t)moment);
            assert_int_equal(found.tm_gmtoff, told.tm_gmtoff);
            assert_int_equal(found.tm_year, told.tm_year);
            assert_int_equal(found.tm_mon, told.tm_mon);
            assert_int_equal(found.tm_mday, told.tm_mday);
            assert_int_equal(found.tm_hour, told.tm_hour);
            assert_int_equal(found.tm_min, told.tm_min);
            assert_int_equal(found.tm_sec, told.tm_sec);
            assert_int_equal(found.tm_isdst, told.tm_isdst);
        }
    }
    unsetenv("TZ");
    tzset();
}
