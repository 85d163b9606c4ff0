/* SPDX-License-Identifier: BSD-3-Clause */
/* Time that is made up, for a harness that plays what waits: its clocks stand still until something
 * waits for them, and whoever waits in the kernel without a limit would wait for ever, which is a
 * finding. What is defined here takes the place of the C library's functions in the whole program,
 * its libraries too. To be included once. */
#ifndef MUSTER_FUZZ_VIRTUAL_TIME_H
#define MUSTER_FUZZ_VIRTUAL_TIME_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "fuzz_input.h"

#define VIRTUAL_WALL_SECONDS 1700000000
#define VIRTUAL_BOOT_SECONDS 1000000
#define MILLISECONDS_OF_A_SECOND 1000
#define NANOSECONDS_OF_A_MILLISECOND 1000000

static struct {
    bool is_on;
    int64_t milliseconds; /* since it began */
} virtual_time;

static void virtual_time_begin(void) {
    virtual_time.is_on = true;
    virtual_time.milliseconds = 0;
}

/* The fuzzer's own clocks go on. */
static void virtual_time_end(void) {
    virtual_time.is_on = false;
}

static void virtual_time_pass(int milliseconds) {
    virtual_time.milliseconds += milliseconds;
}

int clock_gettime(clockid_t clock, struct timespec *out_time) {
    if (!virtual_time.is_on) {
        return (int)syscall(SYS_clock_gettime, clock, out_time);
    }
    bool is_wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
    out_time->tv_sec = (is_wall ? VIRTUAL_WALL_SECONDS : VIRTUAL_BOOT_SECONDS) +
                       virtual_time.milliseconds / MILLISECONDS_OF_A_SECOND;
    out_time->tv_nsec =
        virtual_time.milliseconds % MILLISECONDS_OF_A_SECOND * NANOSECONDS_OF_A_MILLISECOND;
    return 0;
}

int epoll_pwait(
    int fd, struct epoll_event *events, int most, int milliseconds, const sigset_t *signals) {
    int limit = virtual_time.is_on ? 0 : milliseconds;
    int count = (int)syscall(SYS_epoll_pwait, fd, events, most, limit, signals, NSIG / 8);
    if (virtual_time.is_on && count == 0 && milliseconds != 0) {
        FUZZ_REQUIRE(milliseconds > 0); /* nobody would ever wake it */
        virtual_time_pass(milliseconds);
    }
    return count;
}

int epoll_wait(int fd, struct epoll_event *events, int most, int milliseconds) {
    return epoll_pwait(fd, events, most, milliseconds, NULL);
}

#endif
