/* SPDX-License-Identifier: BSD-3-Clause */
/* The event loop of one thread: timers, descriptors, and a way for other threads to wake it. Only
 * the thread that runs the loop may use it, except for event_wake_send. Other modules of the host
 * floor use the libuv loop inside; higher floors see only this header. */
#ifndef MUSTER_HOST_LOOP_EVENT_LOOP_H
#define MUSTER_HOST_LOOP_EVENT_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* Turns signals to this process into calls from the event loop, and keeps SIGPIPE from ending it.
 * The agent machine decides what a signal means. SIGCHLD belongs to process_watch. */

struct signal_watch;

/* A set of signals: bit 0 is signal 1, as in /proc/<pid>/status. */
static inline uint64_t signal_watch_bit(int signal) {
    return UINT64_C(1) << (signal - 1);
}

/* The signals that whoever has started this process wants ignored, such as nohup (SIGHUP) and a
 * shell's "command &" in a script (SIGINT and SIGQUIT). Without those that a program ignores for
 * itself alone (SIGPIPE, SIGXFSZ), and without SIGCHLD, by which children are waited for. Call it
 * before anything here changes what is ignored. Async-signal-safe. */
uint64_t signal_watch_ignored(void);

/* Handles each of `signals` from now on, even if it was ignored or blocked before. A number may
 * occur twice. Create the watch before other threads and before any work that takes time: a signal
 * that comes earlier has its default effect. FAILURE_INVALID for a signal that cannot be handled
 * (SIGKILL, SIGSTOP, no such number); then none is handled. */
__attribute__((warn_unused_result)) enum failure_code signal_watch_new(struct event_loop *loop,
    const int *signals, size_t count, void (*received)(void *context, int signal), void *context,
    struct signal_watch **out_watch, struct failure *failure);

/* Blocks the signals for this thread, for good. For a program that is about to end, whose exit
 * status is to stay what it is when one of them comes once more. Accepts NULL. */
void signal_watch_go_deaf(const struct signal_watch *watch);

/* Afterwards the signals have their default effect; an earlier handler is not restored. Accepts
 * NULL. */
void signal_watch_free(struct signal_watch *watch);

/* From now on, a write to a closed pipe or socket, or to a file that has reached the limit on file
 * sizes, fails and does not end the process. */
void signal_watch_ignore_write_signals(void);

/* A one-shot timer for a point of calendar time. It is as exact as the kernel's timers, while an
 * event_timer counts whole milliseconds. If the clock is set meanwhile, the timer still fires when
 * the clock shows that time. */

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

/* An event loop inside a program that has a loop of its own. It gives that program one descriptor,
 * which is readable whenever there is something to do, and does it when it is called. It leaves the
 * program's signals alone: a connection that is closed by its other side does not end a program
 * that has SIGPIPE's default.
 *
 * Only the process that has made the loop may use it: a child that was forked shares its kernel
 * objects, and would disturb the parent. */

struct embedded_loop;

__attribute__((warn_unused_result)) enum failure_code embedded_loop_new(
    struct embedded_loop **out_embedded, struct failure *failure);

/* Everything on the loop must have been freed before; not from inside a callback. Accepts NULL. */
void embedded_loop_free(struct embedded_loop *embedded);

/* The loop, to put things on. After that, and after they were given something to do, call
 * embedded_loop_note. */
struct event_loop *embedded_loop_inside(struct embedded_loop *embedded);

/* To be polled for reading, by the program's own loop. */
int embedded_loop_fd(const struct embedded_loop *embedded);

/* Makes the descriptor readable when what is on the loop wants to run. */
void embedded_loop_note(struct embedded_loop *embedded);

/* Does what there is to do, and does not wait. */
void embedded_loop_process(struct embedded_loop *embedded);

/* Does what there is to do, and waits, until `*is_done`; callbacks set it and call
 * event_loop_stop. */
void embedded_loop_run_until(struct embedded_loop *embedded, const bool *is_done);

/* Whether one of the two above is under way: then neither may be called. */
bool embedded_loop_is_running(const struct embedded_loop *embedded);

/* False in a child that was forked since. */
bool embedded_loop_is_of_this_process(const struct embedded_loop *embedded);

/* A line and a status in place of a core dump when the machine refuses what the program cannot do
 * without: memory, a file descriptor, a place in an epoll set. libuv calls abort() then, and so
 * does base/memory. Any other abort, as after a failed assertion, stays one. */

/* From now on, an abort whose reason (errno) is such a refusal writes one line to stderr, and the
 * process exits with status 1. */
void abort_notice_install(void);
/* Takes that back. */
void abort_notice_remove(void);

/* Where the refusal is of memory, `words` go to this socket, too. They are borrowed. */
void abort_notice_tell(int fd, const char *words);

#endif
