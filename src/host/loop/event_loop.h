/* SPDX-License-Identifier: BSD-3-Clause */
/* The event loop of one thread: timers, descriptors, and a way for other threads to wake it. Only
 * the thread that runs the loop may use it, except for event_wake_send. Other modules of the host
 * floor use the libuv loop inside; higher floors see only this header. */
#ifndef MUSTER_HOST_LOOP_EVENT_LOOP_H
#define MUSTER_HOST_LOOP_EVENT_LOOP_H

#include <stdbool.h>

#include "base/duration.h"
#include "base/failure.h"

struct event_loop;
struct uv_loop_s;
struct uv_poll_s;

__attribute__((warn_unused_result)) enum failure_code event_loop_new(
    struct event_loop **out_loop, struct failure *failure);

/* Closes what is still open inside and frees the loop. The owners of timers, descriptors and wakes
 * must be freed before. Returns false when another owner left a handle behind, which is a leak;
 * tests assert that it is true. Accepts NULL (true). */
bool event_loop_free(struct event_loop *loop);

/* Runs callbacks until event_loop_stop is called, or until nothing is left to wait for. */
void event_loop_run(struct event_loop *loop);

/* Makes event_loop_run return after the current callback. When it is not running, its next call
 * returns at once. */
void event_loop_stop(struct event_loop *loop);

/* Runs the callbacks that are ready, without waiting. Returns true when something is still being
 * waited for. For tests, and while the loop does not run. */
bool event_loop_run_ready(struct event_loop *loop);

struct instant event_loop_now(const struct event_loop *loop);
struct wall_time event_loop_wall_time(const struct event_loop *loop);

/* The libuv loop, for modules of the host floor. */
struct uv_loop_s *event_loop_uv(struct event_loop *loop);

/* uv_poll_init for those modules; UV_ENOMEM where libuv would abort for want of memory later. */
__attribute__((warn_unused_result)) int event_loop_init_poll(
    struct event_loop *loop, struct uv_poll_s *poll, int fd);

/* A one-shot timer. */
struct event_timer;
struct event_timer *event_timer_new(
    struct event_loop *loop, void (*fired)(void *context), void *context);
/* May be called from inside the timer's own callback. Accepts NULL. */
void event_timer_free(struct event_timer *timer);
/* Fires once, not before `when`. A new setting replaces the old one. An instant that never comes
 * disarms the timer. */
void event_timer_set(struct event_timer *timer, struct instant when);
/* Fires once, not before `earliest`, and about `latest` at the latest. Timers of a loop that are
 * set so for about a second choose the same moments, so that the thread is woken once for all of
 * them. */
void event_timer_set_between(
    struct event_timer *timer, struct instant earliest, struct instant latest);
void event_timer_stop(struct event_timer *timer);

/* Watches a descriptor until it becomes readable. The descriptor stays the caller's. Free the watch
 * before closing it. */
struct event_descriptor;
__attribute__((warn_unused_result)) enum failure_code event_descriptor_new(struct event_loop *loop,
    int fd, void (*readable)(void *context), void *context,
    struct event_descriptor **out_descriptor, struct failure *failure);
void event_descriptor_free(struct event_descriptor *descriptor);

/* A wake-up that any thread may send. Several sends before the loop's next turn cause one call. */
struct event_wake;
__attribute__((warn_unused_result)) enum failure_code event_wake_new(struct event_loop *loop,
    void (*woken)(void *context), void *context, struct event_wake **out_wake,
    struct failure *failure);
void event_wake_free(struct event_wake *wake);
void event_wake_send(struct event_wake *wake);

#endif
