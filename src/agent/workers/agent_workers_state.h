/* SPDX-License-Identifier: BSD-3-Clause */
/* What is known of the workers of this node: shared by agent_workers.c, which starts and ends them,
 * and agent_workers_account.c, which tells of them. Nobody else looks inside. */
#ifndef MUSTER_AGENT_WORKERS_AGENT_WORKERS_STATE_H
#define MUSTER_AGENT_WORKERS_AGENT_WORKERS_STATE_H

#include "agent/workers/agent_workers.h"
#include "agent/workers/attempt_logs.h"
#include "agent/workers/awaited_place.h"
#include "agent/workers/finished_logs.h"
#include "agent/workers/worker_notes.h"
#include "agent/workers/worker_value.h"
#include "host/failure/process_evidence.h"
#include "host/loop/errands.h"
#include "host/process/process_family.h"
#include "host/process/process_spawn.h"

struct agent_worker {
    pid_t pid;      /* 0: not started */
    bool is_ending; /* it was told how it ends, before it ended */
    bool has_exited;
    char *error_file;
    struct text evidence;
    struct worker_notes notes;
    struct worker_value value;
    struct awaited_place place; /* awaited: its process is a standby worker at its gate */
};

struct agent_workers {
    const struct agent_workers_settings settings;
    struct process_family *family;
    struct spawn_crew *crew;
    struct process_evidence *evidence;
    struct errands *errands;
    struct worker_errors *errors;
    struct event_loop *loop;
    struct event_timer *impatience;             /* of a start */
    struct attempt_logs_settings logs_settings; /* of the last start */
    const struct node_placement *placement;     /* the same */
    struct errand *making;      /* its files are being made; NULL: no start is under way */
    struct agent_worker *items; /* by local rank */
    size_t count;
    char *log_directory; /* of the attempt; NULL: none */
    char *timer_file;    /* for all workers; NULL: whatever they inherit */
    bool (*renew_timers)(void *context);
    void *timers;    /* its context */
    bool has_timers; /* the file is there */
    struct finished_logs *finished_logs;
    bool has_started;     /* ever */
    bool is_attempt_open; /* started, and not yet all gone */
    bool is_starting;     /* standby workers are awaited, or will be */
};

/* It is known how the worker ends: collects what else is known of that. What is learned when it has
 * ended takes the place of what was learned before, but its error file is read once. */
void agent_workers_learn_end(
    struct agent_workers *workers, int local_rank, const struct process_exit *how);

#endif
