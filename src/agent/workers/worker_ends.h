/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells of the ends of workers, in the order in which they came. Each end is told together with
 * what the worker's error file says. Judges neither.
 *
 * Another thread reads the file, because the file may be on a dead disk. An end waits for its file
 * for half a second at most, and the ends that come later wait behind it. Then the end is told
 * without the file. So everybody who is told of an end (this node's other workers, the other nodes,
 * the report) learns at the same time why the worker failed, and nothing is told twice. On a disk
 * that answers, the wait is only the time in which one thread wakes another. A file that is read
 * later than that is still used in the report at the end. */
#ifndef MUSTER_AGENT_WORKERS_WORKER_ENDS_H
#define MUSTER_AGENT_WORKERS_WORKER_ENDS_H

#include <stddef.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "core/workers/process_exit.h"
#include "host/loop/errands.h"
#include "host/loop/event_loop.h"

/* How long an end waits for the worker's error file. */
#define WORKER_ENDS_PATIENCE_MILLISECONDS 500

struct worker_ends;

struct worker_ends_settings {
    struct event_loop *loop; /* borrowed, as the errands */
    struct errands *errands;
    size_t worker_count;
    /* Called on the loop, also from within the functions below. */
    void (*exited)(void *context, int local_rank, struct process_exit how);
    void (*all_gone)(void *context);
    void *context;
    /* For tests: called instead of error_file_read, if it is not NULL. */
    enum failure_code (*read)(
        const char *path, size_t ceiling, struct bytes *out_bytes, struct failure *failure);
};

/* What is known of an error file. */
struct worker_error {
    enum failure_code code; /* NONE: it was read; MISSING: there is none; TIMEOUT: not read yet */
    struct bytes content;   /* when it was read */
    struct failure failure; /* when not */
};

struct worker_ends *worker_ends_new(const struct worker_ends_settings *settings);
/* Nothing is told any more. Accepts NULL. Must not be called from within a callback. */
void worker_ends_free(struct worker_ends *ends);

/* Begins a new attempt: what was read is forgotten. Only after all ends of the attempt before have
 * been told. */
void worker_ends_begin(struct worker_ends *ends);

/* A worker has ended. `error_file` is NULL when there is no file to read. */
void worker_ends_add(
    struct worker_ends *ends, int local_rank, struct process_exit how, const char *error_file);
/* Nothing of the workers is left. This is told after the ends that came before. */
void worker_ends_add_all_gone(struct worker_ends *ends);

/* Has the error file of a worker read that has not ended. No end waits for it. */
void worker_ends_read(struct worker_ends *ends, int local_rank, const char *error_file);

/* NULL when the file was not asked for in this attempt. Valid until the loop runs again. */
const struct worker_error *worker_ends_error(const struct worker_ends *ends, int local_rank);

#endif
