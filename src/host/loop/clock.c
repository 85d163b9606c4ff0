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

struct log_time clock_log_time(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    struct tm local;
    localtime_r(&now.tv_sec, &local);
    return (struct log_time){
        .month = local.tm_mon + 1,
        .day = local.tm_mday,
        .hour = local.tm_hour,
        .minute = local.tm_min,
        .second = local.tm_sec,
        .microsecond = (int)(now.tv_nsec / 1000000) * 1000,
    };
}
