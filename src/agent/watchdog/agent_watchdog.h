/* SPDX-License-Identifier: BSD-3-Clause */
/* The watchdog of this node's workers: takes timer requests from a FIFO and ends the process whose
 * timer expires, nobody else; it is looked at first, if evidence is wanted. What becomes of the job
 * is then decided as after any other death of a worker, unless the configuration wants the agent to
 * end with it, as FileTimerServer in torch/distributed/elastic/timer/file_based_local_timer.py
 * does. */
#ifndef MUSTER_AGENT_WATCHDOG_AGENT_WATCHDOG_H
#define MUSTER_AGENT_WATCHDOG_AGENT_WATCHDOG_H

#include <sys/types.h>

#include "agent/failure/agent_evidence.h"
#include "agent/workers/agent_workers.h"
#include "base/failure.h"
#include "base/log.h"
#include "base/text.h"
#include "core/launch/launch_config.h"
#include "core/telling/event_record.h"
#include "host/loop/event_loop.h"

struct agent_watchdog;

/* Told what happens, as FileTimerServer tells its log_event; `timer` is NULL where it is about
 * none, else borrowed. */
struct agent_watchdog_observer {
    void (*happened)(
        void *context, enum event_watchdog what, const struct event_timer_record *timer);
    void *context;
};

struct agent_watchdog_settings {
    const struct launch_config *config; /* borrowed, as all of this */
    const struct text_list *environment;
    const struct log *log;
    struct agent_workers *workers;
    /* Called when a process was ended and the configuration wants the agent to end, too. */
    void (*end_agent)(void *context);
    /* Somebody whose timer expired is being looked at; that is over, and whoever was to be ended
     * with it has been. Needed with `evidence`. */
    void (*look_begun)(void *context);
    void (*look_over)(void *context);
    void *context;
    struct agent_watchdog_observer observer; /* `happened` may be NULL */
    struct agent_evidence *evidence; /* looks at who is to be ended first; NULL: nobody does */
    struct guardian *guardian; /* removes the FIFO of an agent that was killed; NULL: nobody does */
};

/* Makes the FIFO and tells the workers' environment about it; *out_watchdog is NULL when the job
 * wants no timers. The functions below accept that. */
__attribute__((warn_unused_result)) enum failure_code agent_watchdog_new(struct event_loop *loop,
    const struct agent_watchdog_settings *settings, struct agent_watchdog **out_watchdog,
    struct failure *failure);

/* Removes the FIFO. Free the evidence before. */
void agent_watchdog_free(struct agent_watchdog *watchdog);

/* Serves the workers that are started next; what earlier ones have asked for is forgotten. Drop the
 * evidence that is under way before. */
void agent_watchdog_begin(struct agent_watchdog *watchdog);

/* The workers are being stopped: their timers do not matter any more. */
void agent_watchdog_end(struct agent_watchdog *watchdog);

/* When it last had nothing overdue to do: now, or when the timer was due that it has not seen to,
 * or since when a process is being looked at, or cannot be ended. */
struct wall_time agent_watchdog_last_progress(
    const struct agent_watchdog *watchdog, struct wall_time now);

/* How many timers are held; how many requests have come, also those that were refused. */
size_t agent_watchdog_timer_count(const struct agent_watchdog *watchdog);
uint64_t agent_watchdog_request_count(const struct agent_watchdog *watchdog);

/* A worker has exited. */
void agent_watchdog_forget(struct agent_watchdog *watchdog, pid_t pid);

#endif
