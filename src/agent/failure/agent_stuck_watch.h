/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks for workers that hang in the kernel. Nothing tells of a process's state, so this polls,
 * every
 * --monitor-interval, and only when TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT asks for it. */
#ifndef MUSTER_AGENT_FAILURE_AGENT_STUCK_WATCH_H
#define MUSTER_AGENT_FAILURE_AGENT_STUCK_WATCH_H

#include <stdbool.h>
#include <sys/types.h>

#include "agent/workers/agent_workers.h"
#include "base/duration.h"
#include "base/log.h"
#include "core/launch/launch_config.h"
#include "host/loop/event_loop.h"
#include "host/process/process_table.h"

struct agent_stuck_watch;

struct agent_stuck_watch_settings {
    const struct launch_config *config; /* borrowed, as all of this */
    const struct agent_workers *workers;
    int worker_count;
    const struct log *log;
    /* process_table_read, or what a test has instead */
    bool (*read_process)(pid_t pid, struct kernel_process_stat *out_stat);
    /* A worker has hung for the whole timeout; told once. */
    void (*stuck)(void *context, int local_rank, struct duration how_long);
    void *context;
};

/* NULL when the job does not ask for it. The functions below accept that. */
struct agent_stuck_watch *agent_stuck_watch_new(
    struct event_loop *loop, const struct agent_stuck_watch_settings *settings);
void agent_stuck_watch_free(struct agent_stuck_watch *watch);

/* From now on the workers of a new attempt are looked at, until end. */
void agent_stuck_watch_begin(struct agent_stuck_watch *watch);
/* Also from inside `stuck`. */
void agent_stuck_watch_end(struct agent_stuck_watch *watch);

#endif
