/* SPDX-License-Identifier: BSD-3-Clause */
/* Turns signals to this process into calls from the event loop, and keeps SIGPIPE from ending it.
 * Deciding what a signal means is the agent machine's. SIGCHLD belongs to process_watch. */
#ifndef MUSTER_HOST_SIGNAL_WATCH_H
#define MUSTER_HOST_SIGNAL_WATCH_H

#include <stddef.h>

#include "base/failure.h"
#include "host/event_loop.h"

struct signal_watch;

/* Handles each of `signals` from now on, also those that were ignored or blocked; a number may
 * occur twice. Make it before other threads and anything else that takes time: an earlier signal
 * has its default effect. FAILURE_INVALID for a signal that cannot be handled (SIGKILL, SIGSTOP, no
 * such number); then none is. */
__attribute__((warn_unused_result)) enum failure_code signal_watch_new(struct event_loop *loop,
    const int *signals, size_t count, void (*received)(void *context, int signal), void *context,
    struct signal_watch **out_watch, struct failure *failure);

/* Their earlier effect is not restored: they have their default one. Accepts NULL. */
void signal_watch_free(struct signal_watch *watch);

/* Writing to a closed pipe or socket becomes an error instead of the end of the process. */
void signal_watch_ignore_broken_pipes(void);

#endif
