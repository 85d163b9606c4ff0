/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps the numbers of one agent (core/telling/job_metrics, and those of its watchdog, its store
 * and its log thread), and writes them for Prometheus, with those of the whole job where it is the
 * host that knows it. Who asks over HTTP gets them, and a file (--metrics-file), each half minute
 * and at the end. The file is written on a thread of its own: a disk that does not answer delays
 * nothing, and is told once. There are none where nobody may ask, and no file is wanted. */
#ifndef MUSTER_AGENT_TELLING_AGENT_METRICS_H
#define MUSTER_AGENT_TELLING_AGENT_METRICS_H

#include "agent/telling/agent_job_chronicle.h"
#include "agent/watchdog/agent_watchdog.h"
#include "agent/workers/agent_preparation.h"
#include "base/log.h"
#include "base/text.h"
#include "core/agent/agent_machine.h"
#include "core/launch/launch_config.h"
#include "core/standby/standby_plan.h"
#include "core/telling/event_record.h"
#include "host/loop/event_loop.h"
#include "host/loop/tally.h"

struct agent_metrics;

/* What is told as it is in the moment. Borrowed; each may be NULL, but for the machine. */
struct agent_metrics_facts {
    const struct agent_machine *machine;
    const struct node_placement *placement; /* of the round that was joined last */
    const struct agent_watchdog *watchdog;
    const struct standby_plan *standby;
    struct agent_job_chronicle *job;
    int failed_first; /* so often a worker of this node has */
    int64_t step;     /* of the worker that is least far; -1: none */
    int64_t spares;   /* nodes that wait to be in a world; -1: not known */
};

/* All are borrowed. */
struct agent_metrics_settings {
    const struct launch_config *config;
    const struct agent_preparation *preparation;
    struct tally *worker_store; /* counts what the workers' stores carry out */
    const struct log *log;
    void (*find)(void *context, struct agent_metrics_facts *out_facts);
    void *context;
};

/* Begins to write the file, where one is wanted. */
struct agent_metrics *agent_metrics_new(
    struct event_loop *loop, const struct agent_metrics_settings *settings);
/* Accepts NULL, as do the functions below but for the last. */
void agent_metrics_free(struct agent_metrics *metrics);
/* The job is over for this node: the file is written for the last time. */
void agent_metrics_end(struct agent_metrics *metrics);

/* What other threads count into; NULL when nobody asks. */
struct tally *agent_metrics_record_store_operations(struct agent_metrics *metrics);
struct tally *agent_metrics_log_bytes(struct agent_metrics *metrics);

/* See job_metrics_step and job_metrics_watchdog. */
void agent_metrics_step(struct agent_metrics *metrics, enum agent_phase before,
    const struct agent_machine *machine, const struct agent_event *event);
void agent_metrics_watchdog(struct agent_metrics *metrics, enum event_watchdog what,
    const struct event_timer_record *timer, struct wall_time now);

/* Appends everything. */
void agent_metrics_write(struct agent_metrics *metrics, struct text *out);

#endif
