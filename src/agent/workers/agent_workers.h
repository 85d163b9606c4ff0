/* SPDX-License-Identifier: BSD-3-Clause */
/* The workers of this node, attempt by attempt: builds what each is started with, starts them,
 * passes signals on and tells what became of them. Decides nothing: when to start, stop and kill is
 * the agent machine's. */
#ifndef MUSTER_AGENT_WORKERS_AGENT_WORKERS_H
#define MUSTER_AGENT_WORKERS_AGENT_WORKERS_H

#include <stdbool.h>
#include <sys/types.h>

#include "agent/scratch/agent_scratch.h"
#include "agent/standby/agent_standby.h"
#include "agent/workers/agent_preparation.h"
#include "agent/workers/attempt_logs.h"
#include "agent/workers/worker_progress.h"
#include "base/bytes.h"
#include "base/duration.h"
#include "base/failure.h"
#include "base/log.h"
#include "base/text.h"
#include "core/launch/launch_config.h"
#include "core/workers/log_plan.h"
#include "core/workers/worker_group.h"
#include "host/log/log_thread.h"
#include "host/loop/event_loop.h"
#include "host/process/guardian.h"
#include "host/process/process_family.h"
#include "host/process/process_spawn.h"

/* In the worker, once. FAILURE_LIMIT above RUN_RETURN_VALUE_MAXIMUM, FAILURE_SYSTEM. */
__attribute__((warn_unused_result)) enum failure_code worker_value_write(
    int fd, struct slice bytes, struct failure *failure);

/* Called on the agent's loop. One of started and start_failed answers a start, unless that is ended
 * before; after it come one exited per started worker and, once nothing of the attempt is left, one
 * all_gone. One ending may come before the exited of a worker that fails. */
struct agent_workers_observer {
    void (*started)(void *context);
    void (*start_failed)(void *context, int local_rank, const char *message);
    void (*ending)(void *context, int local_rank, struct process_exit how);
    void (*exited)(void *context, int local_rank, struct process_exit how);
    void (*all_gone)(void *context);
    void *context;
    /* What a worker has left behind was ended. May be NULL. */
    void (*orphan_ended)(void *context, const struct process_orphan *orphan);
};

struct agent_standby;

struct agent_workers_settings {
    const struct launch_config *config; /* borrowed, as all of this */
    const struct agent_preparation *preparation;
    const struct text_list *environment;
    const struct log *log;
    const struct agent_scratch *scratch; /* NULL: none */
    long descriptor_limit;    /* the workers' soft limit of open files; -1: the agent's */
    uint64_t ignored_signals; /* … which they inherit; see signal_watch_ignored */
    uint64_t kin_limit;       /* by which what descends from them is known; 0: none */
    const struct process_function *function; /* run in the place of the program; or NULL */
    int processors;                          /* so many processors may be used to start workers */
    struct guardian *guardian;
    struct log_thread *log_thread;    /* NULL when no stream is redirected */
    struct agent_standby *standby;    /* NULL when there are no standby workers */
    struct worker_progress *progress; /* NULL when workers do not tell of their steps */
    struct agent_workers_observer observer;
};

struct agent_workers;

__attribute__((warn_unused_result)) enum failure_code agent_workers_new(struct event_loop *loop,
    const struct agent_workers_settings *settings, struct agent_workers **out_workers,
    struct failure *failure);

/* Accepts NULL. Call it only when all are gone or have been abandoned. */
void agent_workers_free(struct agent_workers *workers);

/* What the next start takes the place of the log tree with, by local rank; empty before. The caller
 * fills it in. */
struct attempt_own_files *agent_workers_own_files(struct agent_workers *workers);

/* Starts all workers of an attempt once their log files are there, which a dead disk may hold up; a
 * standby worker takes the place of a process where there is one. Nothing of an earlier one may be
 * left. `placement` stays as it is until the start is over. */
void agent_workers_start(struct agent_workers *workers, const struct node_placement *placement);

/* A child of this process that is no worker's. */
void agent_workers_leave_out(struct agent_workers *workers, pid_t pid);

/* To everything that belongs to the workers, as process_family_signal says; nothing happens where
 * nobody is left. Ends a start
 * that waits for its log files or for standby workers: then nobody else is started. */
void agent_workers_signal(struct agent_workers *workers, int signal);

/* Calls back once, when the log files of the attempt that is not over yet are complete. NULL: no
 * longer. */
void agent_workers_notify_of_logs(
    struct agent_workers *workers, void (*complete)(void *context), void *context);

/* TORCHELASTIC_TIMER_FILE of every worker started from now on. Before a start at which it is gone,
 * `renew` is called, and tells whether it is there again: otherwise workers are told of none. */
void agent_workers_set_timer_file(
    struct agent_workers *workers, const char *path, bool (*renew)(void *context), void *context);

/* The local rank of the worker that is process `pid` and has not ended; -1 when there is none. */
int agent_workers_find(const struct agent_workers *workers, pid_t pid);

/* Visits the workers that run, then what those that have ended left behind; -1 is of a worker that
 * is not known. */
void agent_workers_each_process(const struct agent_workers *workers,
    void (*visit)(void *context, pid_t pid, int local_rank), void *context);

/* Notes who sent a worker `signal` and why, "by the watchdog: timer 'x' expired", as evidence for
 * when it ends. */
void agent_workers_note_signal(
    struct agent_workers *workers, int local_rank, int signal, const char *by_whom);

/* Notes what a worker was doing when it was decided to kill it, "sleeping in read; see …", as
 * evidence for when it ends. */
void agent_workers_note_hang(struct agent_workers *workers, int local_rank, const char *words);

/* Has the error file read of a worker that is told of before it has ended. */
void agent_workers_read_error_file(struct agent_workers *workers, int local_rank);

/* Calls `done` once the error file of a worker that has failed has been read (of all of them, with
 * WORKER_ERRORS_ALL), at the latest `patience` after its reading began: see worker_errors_await. A
 * worker's end is told before its file has been read. */
void agent_workers_await_errors(struct agent_workers *workers, int local_rank,
    struct duration patience, void (*done)(void *context), void *context);

/* A file among a worker's logs, whether it exists or not; the caller frees it. NULL: there are no
 * logs, or `local_rank` is -1. */
char *agent_workers_log_file(
    const struct agent_workers *workers, int local_rank, enum log_tree_file file);

/* Of the logs of this start of the workers; NULL: there are none. */
const char *agent_workers_log_directory(const struct agent_workers *workers);

/* Where a worker's stderr is kept; the caller frees it. NULL: it goes to no file of Muster's. */
char *agent_workers_stderr_file(const struct agent_workers *workers, int local_rank);

/* Whether the log files of workers that are gone are complete; waits for that, see
 * finished_logs_await. */
__attribute__((warn_unused_result)) bool agent_workers_await_logs(
    struct agent_workers *workers, struct duration patience);

/* About the workers of the last attempt. Pid 0 and NULL where there is nothing to tell; strings
 * belong to `workers`. */
pid_t agent_workers_pid(const struct agent_workers *workers, int local_rank);
/* Appends what its function has given back. */
void agent_workers_return_value(
    const struct agent_workers *workers, int local_rank, struct bytes *out_value);
const char *agent_workers_error_file(const struct agent_workers *workers, int local_rank);
/* What is known of its error file; NULL: it has not been read. Good until the loop runs on. */
const struct worker_error *agent_workers_error(const struct agent_workers *workers, int local_rank);
const char *agent_workers_evidence(const struct agent_workers *workers, int local_rank);

/* Workers that are started beside each other, as processes of their own. Each is made ready and
 * added; then all of them are started. A batch holds what they are started with until it is
 * cleared. */

/* More workers are started batch by batch, so that few descriptors are open at a time. */
#define WORKER_BATCH_MAXIMUM ((size_t)32)

struct agent_workers;

#endif
