/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells that a process is ending while the kernel still takes its memory down. Its pidfd and its
 * parent are told only after that: 25 to 35 ms later for a process with PyTorch's libraries.
 *
 * The process takes a robust mutex in a page that it shares with this one, and never gives it back.
 * The first thing that the kernel does for a process that ends is to mark such mutexes
 * (FUTEX_OWNER_DIED) and to wake those who wait for them: here one thread for each process. What
 * the page says is only a reason to look: /proc decides whether the process ends, and how. So the
 * process may write anything into its page.
 *
 * Nothing is told of a process that has not taken the mutex, ends with success, or execs another
 * program. A child of the process has no part in the mutex. */
#ifndef MUSTER_HOST_PROCESS_DEATH_NOTICE_H
#define MUSTER_HOST_PROCESS_DEATH_NOTICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/failure.h"
#include "core/workers/worker_group.h"
#include "host/loop/event_loop.h"

/* The page is the first that many bytes of a file in memory … */
#define DEATH_NOTICE_PAGE 4096
/* … and the mutex is at its front. Where its word is depends on the C library. */
#define DEATH_NOTICE_MUTEX 64

struct death_notice;

struct death_notice_events {
    /* Called on the loop, once at most. It may free the notice. */
    void (*ending)(void *context, pid_t pid, const struct process_exit *exit);
    void *context;
};

/* For a process that will get the file; `fd` stays the caller's, and nobody can make it shorter
 * (memory_file_with_head). */
__attribute__((warn_unused_result)) enum failure_code death_notice_new(struct event_loop *loop,
    int fd, const struct death_notice_events *events, struct death_notice **out_notice,
    struct failure *failure);
/* Call it when the process has ended. Accepts NULL. */
void death_notice_free(struct death_notice *notice);

/* Waits from now on, if the child `pid` has taken the mutex and this was not found before. Call it
 * at any time, and not after its end. Accepts NULL. */
void death_notice_look(struct death_notice *notice, pid_t pid);

/* Reports the end of processes without polling, whether or not they are children of this process.
 * The pidfd of each process is watched by the event loop. The exit status is not collected here;
 * process_watch does that for children. Because descriptors are limited, only so many processes are
 * watched at a time. The end of further processes is not noticed, and no end at all on a kernel
 * without pidfds. */

struct death_watch;

/* `ended` is called from the event loop once for each watched process; the process is then not
 * watched any more. The process has ended, but its parent may not know yet. */
struct death_watch *death_watch_new(struct event_loop *loop, size_t maximum,
    void (*ended)(void *context, pid_t pid), void *context);
/* Accepts NULL. Must not be called from inside `ended`. */
void death_watch_free(struct death_watch *watch);

/* Watches the process if there is room. A process that is already watched stays watched. False when
 * there is no such process. */
bool death_watch_add(struct death_watch *watch, pid_t pid);
void death_watch_remove(struct death_watch *watch, pid_t pid);
void death_watch_remove_all(struct death_watch *watch);

#endif
