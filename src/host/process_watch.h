/* SPDX-License-Identifier: BSD-3-Clause */
/* Learns of the end of child processes without polling: each child's pidfd hangs in the event loop,
 * and where there is no pidfd, SIGCHLD tells. It is the one place that waits for children, so it
 * also reaps those nobody watches (orphans that the agent adopted as a subreaper), without ever
 * taking a watched child's status away. It sends no signals; process_family does, and is what
 * the agent uses.
 *
 * The callbacks run from the event loop, never from within a call below; they may call
 * process_watch_add, but not process_watch_free. */
#ifndef MUSTER_HOST_PROCESS_WATCH_H
#define MUSTER_HOST_PROCESS_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/failure.h"
#include "core/process_exit.h"
#include "host/event_loop.h"
#include "host/process_spawn.h"

struct process_watch;

struct process_watch_events {
    /* A watched process ended; it has been reaped, its pid may be used anew. With pidfds the calls
     * come in the order in which the kernel reported the ends. */
    void (*exited)(void *context, pid_t pid, const struct process_exit *how);
    /* After children were reaped, watched ones or not; once per batch, after the `exited` calls.
     * NULL: not wanted. */
    void (*reaped)(void *context);
    void *context;
};

/* `events` is copied. Handles SIGCHLD through the loop. */
__attribute__((warn_unused_result)) enum failure_code process_watch_new(struct event_loop *loop,
    const struct process_watch_events *events, struct process_watch **out_watch,
    struct failure *failure);

/* Stops watching; the children live on. Accepts NULL. */
void process_watch_free(struct process_watch *watch);

/* Watches a child, whose end may already have come; call it before the loop runs again after the
 * start, or an early end is taken for an orphan's. Takes over the child: its pidfd is closed and
 * its status collected here. A process without pidfd is watched by SIGCHLD; so is one whose pidfd
 * the loop refuses. */
void process_watch_add(struct process_watch *watch, const struct process *process);

/* The watched processes that have not been reported. */
size_t process_watch_count(const struct process_watch *watch);
/* Pid of the `index`-th of them, in the order they were added. It cannot be reused yet. */
pid_t process_watch_pid(const struct process_watch *watch, size_t index);
bool process_watch_has(const struct process_watch *watch, pid_t pid);

/* Whether this process has any child at all, watched or not; asks the kernel, one system call. */
bool process_watch_has_children(const struct process_watch *watch);

#endif
