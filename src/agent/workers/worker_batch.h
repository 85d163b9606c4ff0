/* SPDX-License-Identifier: BSD-3-Clause */
/* Workers that are started beside each other, as processes of their own. Each is made ready and
 * added; then all of them are started. A batch holds what they are started with until it is
 * cleared. This is a part of agent_workers and is not used elsewhere. */
#ifndef MUSTER_AGENT_WORKERS_WORKER_BATCH_H
#define MUSTER_AGENT_WORKERS_WORKER_BATCH_H

#include "agent/workers/attempt_logs.h"
#include "host/process/process_spawn.h"

/* More workers are started batch by batch, so that few descriptors are open at a time. */
#define WORKER_BATCH_MAXIMUM ((size_t)32)

struct agent_workers;

struct worker_batch_item {
    int local_rank;
    int streams[ATTEMPT_STREAM_COUNT];
    struct text_list environment;
    struct text_list arguments;
};

struct worker_batch {
    struct agent_workers *workers;
    const struct attempt_logs *logs; /* which gave the streams; NULL: they stay the caller's */
    struct worker_batch_item *items;
    struct spawn_task *tasks;
    size_t count;
    size_t capacity;
};

/* There is room for `wanted` workers, but not for more than WORKER_BATCH_MAXIMUM. */
void worker_batch_init(struct worker_batch *batch, struct agent_workers *workers,
    const struct attempt_logs *logs_or_null, size_t wanted);
void worker_batch_clear(struct worker_batch *batch);

bool worker_batch_is_full(const struct worker_batch *batch);

/* Adds a worker, for which there must be room. Its environment is dressed. Its streams are those of
 * the batch from now on, also after a failure; but see `logs`. */
__attribute__((warn_unused_result)) enum failure_code worker_batch_add(struct worker_batch *batch,
    int local_rank, struct text_list *environment_taken, const int streams[ATTEMPT_STREAM_COUNT],
    struct failure *failure);

/* Starts all and empties the batch. Who has been started is a worker, also where another could not
 * be. The failure is that of the first of them in the order of the batch. */
__attribute__((warn_unused_result)) enum failure_code worker_batch_start(
    struct worker_batch *batch, int *out_local_rank, struct failure *failure);

#endif
