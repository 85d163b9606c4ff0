/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps the numbers of one agent (core/job_metrics, and those of its watchdog, its store and its
 * log thread), and writes them for Prometheus. There is one only where somebody may ask. */
#ifndef MUSTER_AGENT_TELLING_AGENT_METRICS_H
#define MUSTER_AGENT_TELLING_AGENT_METRICS_H

#include "agent/watchdog/agent_watchdog.h"
#include "agent/workers/agent_preparation.h"
#include "base/text.h"
#include "core/agent/agent_machine.h"
#include "core/launch/launch_config.h"
#include "core/standby/standby_plan.h"
#include "core/telling/event_record.h"
#include "host/loop/tally.h"

struct agent_metrics;

/* All are borrowed. `worker_store` counts what the workers' stores carry out. */
struct agent_metrics *agent_metrics_new(const struct launch_config *config,
    const struct agent_preparation *preparation, struct tally *worker_store);
/* Accepts NULL, as do the functions below but for the last. */
void agent_metrics_free(struct agent_metrics *metrics);

/* What other threads count into; NULL when nobody asks. */
struct tally *agent_metrics_record_store_operations(struct agent_metrics *metrics);
struct tally *agent_metrics_log_bytes(struct agent_metrics *metrics);

/* See job_metrics_step and job_metrics_watchdog. */
void agent_metrics_step(struct agent_metrics *metrics, enum agent_phase before,
    const struct agent_machine *machine, const struct agent_event *event);
/* The job hangs, and a worker of this node is to blame. */
void agent_metrics_note_hang(struct agent_metrics *metrics);
void agent_metrics_watchdog(struct agent_metrics *metrics, enum event_watchdog what,
    const struct event_timer_record *timer, struct wall_time now);

/* Appends everything. `watchdog` and `standby` may be NULL. */
void agent_metrics_write(struct agent_metrics *metrics, const struct agent_machine *machine,
    const struct agent_watchdog *watchdog, const struct standby_plan *standby, struct text *out);

#endif
