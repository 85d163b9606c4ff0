/* SPDX-License-Identifier: BSD-3-Clause */
/* The error files of the workers of one attempt, read when the workers have ended. Judges nothing.
 *
 * Another thread reads a file, because the file may be on a dead disk. Nobody waits for it to learn
 * that a worker has ended: only what needs the words of the file waits (the account of a failure
 * for other nodes, the report), and only for a bounded time. A file that is read later than that is
 * still used in the report. On a disk that answers, the wait is only the time in which one thread
 * wakes another. */
#ifndef MUSTER_AGENT_WORKERS_WORKER_ERRORS_H
#define MUSTER_AGENT_WORKERS_WORKER_ERRORS_H

#include <stddef.h>

#include "base/bytes.h"
#include "base/duration.h"
#include "base/failure.h"
#include "host/loop/blocking_pool.h"
#include "host/loop/event_loop.h"

/* A wait for the files of all workers. */
#define WORKER_ERRORS_ALL (-1)

struct worker_errors;

struct worker_errors_settings {
    struct event_loop *loop; /* borrowed, as the blocking calls */
    struct blocking_pool *pool;
    size_t worker_count;
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

struct worker_errors *worker_errors_new(const struct worker_errors_settings *settings);
/* Ends a wait without an answer. Accepts NULL. */
void worker_errors_free(struct worker_errors *errors);

/* Begins a new attempt: what was read is forgotten. Ends a wait without an answer. */
void worker_errors_begin(struct worker_errors *errors);

/* Has the error file of a worker read, unless it is being read. Does nothing when `error_file` is
 * NULL. */
void worker_errors_read(struct worker_errors *errors, int local_rank, const char *error_file);

/* Calls `done` once the file of the worker (of all workers) has been read, at the latest `patience`
 * after the reading began. Where there is nothing to wait for, `done` is called from within this
 * function. A new wait takes the place of an earlier one. */
void worker_errors_await(struct worker_errors *errors, int local_rank, struct duration patience,
    void (*done)(void *context), void *context);

/* NULL when the file was not asked for in this attempt. Valid until the loop runs again. */
const struct worker_error *worker_errors_get(const struct worker_errors *errors, int local_rank);

#endif
