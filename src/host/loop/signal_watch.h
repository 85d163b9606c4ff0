/* SPDX-License-Identifier: BSD-3-Clause */
/* Turns signals to this process into calls from the event loop, and keeps SIGPIPE from ending it.
 * The agent machine decides what a signal means. SIGCHLD belongs to process_watch. */
#ifndef MUSTER_HOST_LOOP_SIGNAL_WATCH_H
#define MUSTER_HOST_LOOP_SIGNAL_WATCH_H

#include <stddef.h>
#include <stdint.h>

#include "base/failure.h"
#include "host/loop/event_loop.h"

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

#endif
