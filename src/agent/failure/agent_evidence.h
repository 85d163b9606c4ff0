/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks at processes before this agent kills them on its own account, and when they take no steps
 * any more: what is found goes to hang_evidence.txt among the worker's logs, the gist of it to the
 * console and, for when the worker has ended, to the report of failures. */
#ifndef MUSTER_AGENT_FAILURE_AGENT_EVIDENCE_H
#define MUSTER_AGENT_FAILURE_AGENT_EVIDENCE_H

#include <stddef.h>
#include <sys/types.h>

#include "agent/workers/agent_workers.h"
#include "base/duration.h"
#include "base/log.h"
#include "core/launch/launch_config.h"
#include "host/failure/hang_evidence_collector.h"
#include "host/loop/event_loop.h"

struct agent_evidence;
struct agent_standby;

struct agent_evidence_settings {
    const struct launch_config *config; /* borrowed, as all of this */
    struct agent_workers *workers;
    const struct log *log;
    const struct agent_standby *standby; /* or NULL */
};

/* A worker, or a process it has started; -1: nobody knows which. */
struct agent_evidence_subject {
    pid_t pid;
    int local_rank;
};

/* Borrowed. */
struct agent_evidence_order {
    const struct agent_evidence_subject *subjects;
    size_t count;
    const char *reason;          /* of the kill */
    struct duration bound;       /* of time, for all of them together */
    void (*done)(void *context); /* or NULL */
    void *context;
    /* They are not killed, as far as is known: each one is told here, and not on the console. There
     * are no files where the job wants no evidence. NULL: they are killed. */
    void (*seen)(void *context, int local_rank, const struct hang_evidence_result *result);
};

/* NULL when the job wants no evidence, and does not ask whether it hangs. The functions below
 * accept that. */
struct agent_evidence *agent_evidence_new(
    struct event_loop *loop, const struct agent_evidence_settings *settings);

/* Drops what is under way. */
void agent_evidence_free(struct agent_evidence *evidence);

/* Calls `done` when everything has been looked at or time is up; at once, from within this
 * function, when there is nobody to look at or nobody to look. */
void agent_evidence_gather(
    struct agent_evidence *evidence, const struct agent_evidence_order *order);

/* What is under way does not matter any more, since everybody is gone: no `done` is called for
 * orders that were given until now. */
void agent_evidence_drop(struct agent_evidence *evidence);

#endif
