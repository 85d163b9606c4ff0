/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/loop/wall_timer.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/memory.h"

struct wall_timer {
    int fd;
    struct event_descriptor *watch;
    void (*fired)(void *context);
    void *context;
};

static void readable(void *context) {
    struct wall_timer *timer = context;
    uint64_t expirations;
    /* Nothing can be read when the timer was set again or stopped meanwhile. */
    if (read(timer->fd, &expirations, sizeof expirations) == (ssize_t)sizeof expirations) {
        timer->fired(timer->context);
    }
}

enum failure_code wall_timer_new(struct event_loop *loop, void (*fired)(void *context),
    void *context, struct wall_timer **out_timer, struct failure *failure) {
    struct wall_timer *timer = memory_allocate(sizeof *timer);
    timer->fired = fired;
    timer->context = context;
    timer->fd = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    enum failure_code code =
        timer->fd < 0
            ? failure_set_system(failure, errno, "cannot make a timer")
            : event_descriptor_new(loop, timer->fd, readable, timer, &timer->watch, failure);
    if (code != FAILURE_NONE) {
        wall_timer_free(timer);
        return code;
    }
    *out_timer = timer;
    return FAILURE_NONE;
}

void wall_timer_free(struct wall_timer *timer) {
    if (timer != NULL) {
        event_descriptor_free(timer->watch);
        if (timer->fd >= 0) {
            close(timer->fd);
        }
        free(timer);
    }
}

static void set(const struct wall_timer *timer, int64_t nanoseconds) {
    struct itimerspec setting = {0};
    setting.it_value.tv_sec = (time_t)(nanoseconds / NANOSECONDS_PER_SECOND);
    setting.it_value.tv_nsec = (long)(nanoseconds % NANOSECONDS_PER_SECOND);
    (void)timerfd_settime(timer->fd, TFD_TIMER_ABSTIME, &setting, NULL); /* cannot fail */
}

void wall_timer_set(struct wall_timer *timer, struct wall_time when) {
    set(timer, when.nanoseconds > 0 ? when.nanoseconds : 1); /* 0 would disarm it */
}

void wall_timer_stop(struct wall_timer *timer) {
    set(timer, 0);
}
