/* SPDX-License-Identifier: BSD-3-Clause */
/* Learns of the end of processes, whoever's children they are, without polling: each one's pidfd
 * hangs in the event loop. It takes nobody's exit status; process_watch does that for children.
 * Descriptors are few, so it watches no more than so many processes at a time; the end of others
 * goes unnoticed, as does everybody's on a kernel without pidfds. */
#ifndef MUSTER_HOST_DEATH_WATCH_H
#define MUSTER_HOST_DEATH_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "host/event_loop.h"

struct death_watch;

/* `ended` is called from the event loop, once for each watched process, which is not watched any
 * more then. It has ended, its parent may not know yet. */
struct death_watch *death_watch_new(struct event_loop *loop, size_t maximum,
    void (*ended)(void *context, pid_t pid), void *context);
/* Accepts NULL; not from inside `ended`. */
void death_watch_free(struct death_watch *watch);

/* Watches the process, where there is room; one that is watched stays so. False when there is no
 * such process. */
bool death_watch_add(struct death_watch *watch, pid_t pid);
void death_watch_remove(struct death_watch *watch, pid_t pid);
void death_watch_remove_all(struct death_watch *watch);

#endif
