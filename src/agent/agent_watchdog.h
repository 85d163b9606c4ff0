/* SPDX-License-Identifier: BSD-3-Clause */
/* The watchdog of this node's workers: takes timer requests from a FIFO and ends the process whose
 * timer expires, nobody else. What becomes of the job is then decided as after any other death of a
 * worker. Compare FileTimerServer in torch/distributed/elastic/timer/file_based_local_timer.py,
 * which ends its own agent too.
 *
 * Deadlines are wall-clock times, since workers give them so. They are compared with the wall clock
 * when a timer on the loop, set to what was left, fires: a clock that is set back postpones them,
 * one that is set forward does not bring them nearer. */
#ifndef MUSTER_AGENT_AGENT_WATCHDOG_H
#define MUSTER_AGENT_AGENT_WATCHDOG_H

#include <sys/types.h>

#include "agent/agent_workers.h"
#include "base/failure.h"
#include "base/log.h"
#include "base/text.h"
#include "core/launch_config.h"
#include "host/event_loop.h"

struct agent_watchdog;

struct agent_watchdog_settings {
    const struct launch_config *config; /* borrowed, as all of this */
    const struct text_list *environment;
    const struct log *log;
    struct agent_workers *workers;
};

/* Makes the FIFO and tells the workers' environment about it; *out_watchdog is NULL when the job
 * wants no timers. The functions below accept that. */
__attribute__((warn_unused_result)) enum failure_code agent_watchdog_new(struct event_loop *loop,
    const struct agent_watchdog_settings *settings, struct agent_watchdog **out_watchdog,
    struct failure *failure);

/* Removes the FIFO. */
void agent_watchdog_free(struct agent_watchdog *watchdog);

/* Serves the workers that are started next; what earlier ones have asked for is forgotten. */
void agent_watchdog_begin(struct agent_watchdog *watchdog);

/* The workers are being stopped: their timers do not matter any more. */
void agent_watchdog_end(struct agent_watchdog *watchdog);

/* A worker has exited. */
void agent_watchdog_forget(struct agent_watchdog *watchdog, pid_t pid);

#endif
