/* SPDX-License-Identifier: BSD-3-Clause */
/* One thread's event loop: timers, descriptors, and a way for other threads to wake it. Everything
 * here is used by the thread that runs the loop, except event_wake_send. The rest of the host floor
 * builds on the libuv loop inside; higher floors see only this header. */
#ifndef MUSTER_HOST_EVENT_LOOP_H
#define MUSTER_HOST_EVENT_LOOP_H

#include <stdbool.h>

#include "base/duration.h"
#include "base/failure.h"

struct event_loop;
struct uv_loop_s;

__attribute__((warn_unused_result)) enum failure_code event_loop_new(
    struct event_loop **out_loop, struct failure *failure);

/* Closes what is still open inside (whose owners must be freed before), and frees the loop. Returns
 * false when a handle of another owner was left behind: a leak, which tests assert against. Accepts
 * NULL (true). */
bool event_loop_free(struct event_loop *loop);

/* Runs callbacks until event_loop_stop, or until nothing is left to wait for. */
void event_loop_run(struct event_loop *loop);

/* Makes event_loop_run return after the current callback; the next one, when none is under way. */
void event_loop_stop(struct event_loop *loop);

/* Runs what is ready now without waiting; true when something is still being waited for. For tests.
 */
bool event_loop_run_ready(struct event_loop *loop);

struct instant event_loop_now(const struct event_loop *loop);
struct wall_time event_loop_wall_time(const struct event_loop *loop);

/* The libuv loop, for modules of the host floor. */
struct uv_loop_s *event_loop_uv(struct event_loop *loop);

/* A one-shot timer. */
struct event_timer;
struct event_timer *event_timer_new(
    struct event_loop *loop, void (*fired)(void *context), void *context);
/* Also from inside its own callback. Accepts NULL. */
void event_timer_free(struct event_timer *timer);
/* Fires once, not before `when`; an earlier setting is replaced. An instant that never comes
 * disarms. */
void event_timer_set(struct event_timer *timer, struct instant when);
void event_timer_stop(struct event_timer *timer);

/* A descriptor that becomes readable. The descriptor stays the caller's; free the watch before
 * closing it. */
struct event_descriptor;
__attribute__((warn_unused_result)) enum failure_code event_descriptor_new(struct event_loop *loop,
    int fd, void (*readable)(void *context), void *context,
    struct event_descriptor **out_descriptor, struct failure *failure);
void event_descriptor_free(struct event_descriptor *descriptor);

/* A wake-up that any thread may send; several sends before the loop comes around are one call. */
struct event_wake;
__attribute__((warn_unused_result)) enum failure_code event_wake_new(struct event_loop *loop,
    void (*woken)(void *context), void *context, struct event_wake **out_wake,
    struct failure *failure);
void event_wake_free(struct event_wake *wake);
void event_wake_send(struct event_wake *wake);

#endif
