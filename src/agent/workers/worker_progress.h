/* SPDX-License-Identifier: BSD-3-Clause */
/* How far the workers of this node are, as they say in the pages that they share with the agent
 * (wire/telling/progress_page), for the chronicle. Where a worker has a record (agent/standby) the
 * page is the head of that; the others have a file of their own. A page is read by looking: often
 * until a worker has taken its first step, and then once a second. When a step was taken the worker
 * says itself. */
#ifndef MUSTER_AGENT_WORKERS_WORKER_PROGRESS_H
#define MUSTER_AGENT_WORKERS_WORKER_PROGRESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/log.h"
#include "base/text.h"
#include "core/agent/agent_machine.h"
#include "core/telling/progress_watch.h"
#include "core/workers/worker_group.h"
#include "host/loop/event_loop.h"
#include "host/process/guardian.h"

struct worker_progress;

struct worker_progress_settings {
    int worker_count;
    /* The hook of Python workers counts the steps of their optimizers (client/standby), and nothing
     * else. Not where there are standby workers, whose hook does that, too. */
    bool has_hook;
    struct guardian *guardian; /* removes the hook where the agent cannot; borrowed */
    const struct log *log;
    const struct node_placement *placement; /* of the round that was joined last; borrowed */
    struct progress_patience patience;
    void (*tell)(void *context, const struct progress_news *news);
    /* A worker has taken its first step in this attempt, or the first new one. May be NULL. */
    void (*stepped)(void *context, bool is_new);
    /* For `silence` no worker has taken a step, which is not to be expected; or zero: one has. */
    void (*stand)(void *context, struct duration silence);
    void *context;
};

/* The functions below accept NULL, which is an agent of a job without progress. */
struct worker_progress *worker_progress_new(
    struct event_loop *loop, const struct worker_progress_settings *settings);
void worker_progress_free(struct worker_progress *progress);

/* Says in the environment of a worker where its page is. */
void worker_progress_dress(const struct worker_progress *progress, struct text_list *environment);
/* The descriptor that a worker gets which is about to be started: its record, or where it has none
 * (-1) a new page, which stays here. */
int worker_progress_descriptor(struct worker_progress *progress, int local_rank, int record);
/* It runs. */
void worker_progress_note_worker(
    struct worker_progress *progress, int local_rank, pid_t pid, int record);

/* Looks at once, as before the end of a worker is told. */
void worker_progress_look(struct worker_progress *progress);

/* The agent machine has taken a step; before the chronicle hears of it. */
void worker_progress_step(
    struct worker_progress *progress, enum agent_phase before, enum agent_phase now);

/* As progress_watch_step. */
int64_t worker_progress_last(const struct worker_progress *progress);

#endif
