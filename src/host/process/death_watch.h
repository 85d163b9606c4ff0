/* SPDX-License-Identifier: BSD-3-Clause */
/* Reports the end of processes without polling, whether or not they are children of this process.
 * The pidfd of each process is watched by the event loop. The exit status is not collected here;
 * process_watch does that for children. Because descriptors are limited, only so many processes are
 * watched at a time. The end of further processes is not noticed, and no end at all on a kernel
 * without pidfds. */
#ifndef MUSTER_HOST_PROCESS_DEATH_WATCH_H
#define MUSTER_HOST_PROCESS_DEATH_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "host/loop/event_loop.h"

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
