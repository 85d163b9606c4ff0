/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether the log files of workers that have ended have all that these wrote. The log thread brings
 * it there, and a dead disk may hold that thread up. */
#ifndef MUSTER_AGENT_WORKERS_FINISHED_LOGS_H
#define MUSTER_AGENT_WORKERS_FINISHED_LOGS_H

#include <stdbool.h>

#include "base/duration.h"
#include "host/log/log_thread.h"
#include "host/loop/event_loop.h"

struct finished_logs;

/* `thread` is borrowed; NULL: no stream passes through it. The caller frees the result. */
struct finished_logs *finished_logs_new(struct event_loop *loop, struct log_thread *thread);

/* The thread may still have to answer, and then the memory lives until it has: for good, where a
 * disk never lets it. Accepts NULL. */
void finished_logs_free(struct finished_logs *logs);

/* The workers of an attempt have ended: see log_thread_finish_attempt. */
void finished_logs_ask(struct finished_logs *logs);

/* Calls back once, when the files of the attempt that is not over yet are complete. NULL: no
 * longer. */
void finished_logs_notify(
    struct finished_logs *logs, void (*complete)(void *context), void *context);

/* Runs the loop until the files of all attempts that have ended are complete, for `patience` at
 * most; whoever wants to wait no longer stops the loop. Returns whether they are complete. */
__attribute__((warn_unused_result)) bool finished_logs_await(
    struct finished_logs *logs, struct duration patience);

#endif
