/* SPDX-License-Identifier: BSD-3-Clause */
/* What one agent consists of: shared by agent.c, which makes and ends it, and agent_events.c, which
 * runs it. Nobody else looks inside. */
#ifndef MUSTER_AGENT_AGENT_STATE_H
#define MUSTER_AGENT_AGENT_STATE_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/agent_event_log.h"
#include "agent/agent_health.h"
#include "agent/agent_metrics.h"
#include "agent/agent_evidence.h"
#include "agent/agent_preparation.h"
#include "agent/agent_rendezvous.h"
#include "agent/agent_stuck_watch.h"
#include "agent/agent_watchdog.h"
#include "agent/agent_workers.h"
#include "base/log.h"
#include "base/text.h"
#include "core/agent_machine.h"
#include "core/failure_account.h"
#include "core/launch_config.h"
#include "core/worker_environment.h"
#include "host/event_loop.h"
#include "host/guardian.h"
#include "host/log_sink.h"
#include "host/log_thread.h"
#include "host/signal_watch.h"

/* One event waiting for its turn, with the text it borrows. */
struct queued_event {
    struct agent_event event;
    char *message;
};

struct agent {
    const struct launch_config *config;
    const struct text_list *environment;
    struct log_sink *sink;
    const struct log *log;
    struct agent_preparation preparation;
    struct event_loop *loop;
    long descriptor_limit; /* the soft limit before it was raised */
    struct event_timer *deadline;
    struct signal_watch *signals;
    struct guardian *guardian;
    struct log_thread *log_thread; /* NULL when no stream passes through it */
    struct agent_rendezvous *rendezvous;
    struct agent_workers *workers;
    struct agent_evidence *evidence;       /* NULL when nobody wants any */
    struct agent_watchdog *watchdog;       /* NULL when no timers are served */
    struct agent_stuck_watch *stuck_watch; /* NULL when nobody asked for it */
    struct agent_event_log *event_log;     /* NULL when nobody asked for it */
    struct agent_health *health;           /* NULL when nobody may ask for it */
    struct agent_metrics *metrics;         /* the same */
    struct agent_machine machine;
    struct queued_event *queue;
    size_t queue_length;
    size_t queue_capacity;
    bool is_stepping;
    struct node_placement placement; /* of the attempt that was joined last */
    char *trouble;                   /* why joining failed, or what a peer reported */
    bool has_root_cause;             /* another node's worker failed first: … */
    struct failure_account root_cause;
    struct agent_outcome outcome;
};

#endif
