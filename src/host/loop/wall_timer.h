/* SPDX-License-Identifier: BSD-3-Clause */
/* A one-shot timer for a point of calendar time. It is as exact as the kernel's timers, while an
 * event_timer counts whole milliseconds. If the clock is set meanwhile, the timer still fires when
 * the clock shows that time. */
#ifndef MUSTER_HOST_LOOP_WALL_TIMER_H
#define MUSTER_HOST_LOOP_WALL_TIMER_H

#include "base/duration.h"
#include "base/failure.h"
#include "host/loop/event_loop.h"

struct wall_timer;

/* FAILURE_SYSTEM when the kernel gives no timer (no descriptors left). */
__attribute__((warn_unused_result)) enum failure_code wall_timer_new(struct event_loop *loop,
    void (*fired)(void *context), void *context, struct wall_timer **out_timer,
    struct failure *failure);
/* May be called from inside the timer's own callback. Accepts NULL. */
void wall_timer_free(struct wall_timer *timer);

/* Fires once, not before `when`, which may already have passed. A new setting replaces the old
 * one. */
void wall_timer_set(struct wall_timer *timer, struct wall_time when);
void wall_timer_stop(struct wall_timer *timer);

#endif
