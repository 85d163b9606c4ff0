/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports the end of child processes without polling: the event loop watches each child's pidfd;
 * where there is no pidfd, SIGCHLD is used. Only this module waits for children. So it also reaps
 * children that are not watched (orphans that the agent adopted as a subreaper), but never takes a
 * watched child's status away. It sends no signals; process_family, which the agent uses, does.
 *
 * The callbacks run from the event loop, never from within a call below. They may call
 * process_watch_add, but not process_watch_free. */
#ifndef MUSTER_HOST_PROCESS_PROCESS_WATCH_H
#define MUSTER_HOST_PROCESS_PROCESS_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/failure.h"
#include "core/workers/worker_group.h"
#include "host/loop/event_loop.h"
#include "host/process/process_spawn.h"

struct process_watch;

struct process_watch_events {
    /* A watched process ended. It has been reaped, so its pid may be reused. With pidfds the calls
     * come in the order in which the kernel reported the ends. */
    void (*exited)(void *context, pid_t pid, const struct process_exit *how);
    /* Called once per batch after children were reaped, watched or not, and after the `exited` and
     * `unwatched_exited` calls. May be NULL. */
    void (*reaped)(void *context);
    /* Another child ended, and has been reaped. May be NULL. */
    void (*unwatched_exited)(void *context, pid_t pid, const struct process_exit *how);
    void *context;
};

/* `events` is copied. Handles SIGCHLD through the loop. */
__attribute__((warn_unused_result)) enum failure_code process_watch_new(struct event_loop *loop,
    const struct process_watch_events *events, struct process_watch **out_watch,
    struct failure *failure);

/* Stops watching; the children live on. Accepts NULL. */
void process_watch_free(struct process_watch *watch);

/* Watches a child, which may already have ended. Call it before the loop runs again after the
 * child's start; later, an early end would be taken for an orphan's. Takes over the child: its
 * pidfd is closed and its status collected here. A child without a pidfd, or with one that the loop
 * refuses, is watched by SIGCHLD. */
void process_watch_add(struct process_watch *watch, const struct process *process);

/* The number of watched processes whose end has not been reported. */
size_t process_watch_count(const struct process_watch *watch);
/* The pid of the `index`-th of them, in the order they were added. It cannot be reused yet. */
pid_t process_watch_pid(const struct process_watch *watch, size_t index);
bool process_watch_has(const struct process_watch *watch, pid_t pid);

/* Whether this process has any child at all, watched or not. This costs one system call. */
bool process_watch_has_children(const struct process_watch *watch);

#endif
