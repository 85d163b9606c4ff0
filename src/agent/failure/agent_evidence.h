/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks at processes before this agent kills them on its own account, and when they take no steps
 * any more: what is found goes to hang_evidence.txt among the worker's logs, the gist of it to the
 * console and, for when the worker has ended, to the report of failures. */
#ifndef MUSTER_AGENT_FAILURE_AGENT_EVIDENCE_H
#define MUSTER_AGENT_FAILURE_AGENT_EVIDENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "agent/workers/agent_workers.h"
#include "base/duration.h"
#include "base/log.h"
#include "base/text.h"
#include "core/launch/launch_config.h"
#include "host/failure/hang_evidence_collector.h"
#include "host/loop/event_loop.h"
#include "host/loop/snapshot_socket.h"

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

/* Looks for workers that hang in the kernel. Nothing tells of a process's state, so this polls,
 * every
 * --monitor-interval, and only when TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT asks for it. */

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

/* Tells who asks what the workers of this node do now: the stack of each one's first thread. They
 * are looked at as hang evidence looks (host/failure/hang_evidence_collector): they are neither
 * stopped nor ended. One question after the other, and one a second at most: a look wants the
 * attention of Pythons that are asked by a signal. */

struct agent_standby;
struct agent_stacks;

struct agent_stacks_settings {
    const struct agent_workers *workers; /* borrowed, as all of this */
    const struct node_placement *placement;
    const struct agent_standby *standby; /* or NULL */
    int worker_count;
    /* To who has asked (snapshot_socket_answer). */
    void (*answer)(void *context, uint64_t ticket, struct text *text_taken);
    void *context;
};

struct agent_stacks *agent_stacks_new(
    struct event_loop *loop, const struct agent_stacks_settings *settings);
/* Nobody is answered any more. Accepts NULL. */
void agent_stacks_free(struct agent_stacks *stacks);

/* Whether the path is one of /v1/stacks, for all, or /v1/stacks?ranks=0-3,7. */
bool agent_stacks_are_meant(const char *path);
/* Accepts NULL, where nobody is answered. */
enum snapshot_answer agent_stacks_answer(
    struct agent_stacks *stacks, const struct snapshot_question *question, struct text *out);

#endif
