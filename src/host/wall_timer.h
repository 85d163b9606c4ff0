/* SPDX-License-Identifier: BSD-3-Clause */
/* A one-shot timer for a point of calendar time, exact to the kernel's own timers, where an
 * event_timer counts in whole milliseconds. The clock may be set meanwhile: it fires when the clock
 * says so, whichever way that came about. */
#ifndef MUSTER_HOST_WALL_TIMER_H
#define MUSTER_HOST_WALL_TIMER_H

#include "base/duration.h"
#include "base/failure.h"
#include "host/event_loop.h"

struct wall_timer;

/* FAILURE_SYSTEM when the kernel gives no timer (descriptors are used up). */
__attribute__((warn_unused_result)) enum failure_code wall_timer_new(struct event_loop *loop,
    void (*fired)(void *context), void *context, struct wall_timer **out_timer,
    struct failure *failure);
/* Also from inside its own callback. Accepts NULL. */
void wall_timer_free(struct wall_timer *timer);

/* Fires once, not before `when`, which may have passed; an earlier setting is replaced. */
void wall_timer_set(struct wall_timer *timer, struct wall_time when);
void wall_timer_stop(struct wall_timer *timer);

#endif
