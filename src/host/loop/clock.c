/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/loop/clock.h"

#include <time.h>

static int64_t read_clock(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now); /* cannot fail for these clocks */
    return (int64_t)now.tv_sec * NANOSECONDS_PER_SECOND + now.tv_nsec;
}

struct instant clock_now(void) {
    return (struct instant){read_clock(CLOCK_MONOTONIC)};
}

struct wall_time clock_wall_time(void) {
    return (struct wall_time){read_clock(CLOCK_REALTIME)};
}
