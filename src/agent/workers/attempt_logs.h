/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the workers of one attempt write: a descriptor for each stream as core/log_plan has it. The
 * files are made by attempt_files, before and elsewhere; nothing here waits for a disk. The first
 * workers do not start without the logs that were asked for; later ones do, with a warning, since a
 * disk that filled up or died meanwhile must not cost the job. Where nobody has asked for files, no
 * workers need them. */
#ifndef MUSTER_AGENT_WORKERS_ATTEMPT_LOGS_H
#define MUSTER_AGENT_WORKERS_ATTEMPT_LOGS_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/workers/agent_preparation.h"
#include "base/bytes.h"
#include "base/duration.h"
#include "base/failure.h"
#include "base/log.h"
#include "base/text.h"
#include "core/launch/launch_config.h"
#include "core/workers/log_plan.h"
#include "host/log/log_directory.h"
#include "host/log/log_stream.h"
#include "host/log/log_thread.h"
#include "host/loop/blocking_pool.h"
#include "host/loop/event_loop.h"

/* The directories and log files of one attempt, made in one go on a thread that a dead disk may
 * hold up (host/loop/blocking_pool). So this owns everything that it works with. attempt_logs
 * decides which files are wanted, and uses them. */

enum attempt_stream {
    ATTEMPT_STDOUT,
    ATTEMPT_STDERR,
    ATTEMPT_STREAM_COUNT,
};

/* Where a worker writes instead of files below the log directory; NULL: there. */
struct attempt_own_files {
    char *paths[ATTEMPT_STREAM_COUNT]; /* of streams that go to files at all */
    char *error_file;
};

void attempt_own_files_clear(struct attempt_own_files *files);

/* One stream of one worker. */
struct attempt_file {
    char *path;                /* NULL: below the directory */
    char *header;              /* NULL: no log file is wanted */
    struct log_stream *stream; /* NULL: none was made, or it was taken … */
    int fd;                    /* … with the worker's end of it */
};

struct attempt_files {
    /* What is wanted; the maker reads it. */
    struct log_directory logs; /* none: no file either */
    struct log_tree_attempt attempt;
    int worker_count;
    char *timer_file;                               /* is looked for; NULL: there is none */
    struct text_list needles[ATTEMPT_STREAM_COUNT]; /* of the filtered files; empty: none */
    /* What came of it. */
    bool is_timer_file_gone;
    bool is_renewed; /* the job's directory had been removed */
    char *directory;
    struct log_filter *filters[ATTEMPT_STREAM_COUNT];
    struct attempt_file (*files)[ATTEMPT_STREAM_COUNT]; /* by local rank */
    enum failure_code code; /* of the first that could not be made … */
    struct failure failure;
    int failed_local_rank; /* … and whose it was; 0 for a directory */
};
/* Makes what is wanted, until the first failure. On any thread. */
void attempt_files_make(void *files);
/* Closes what was made and not taken. */
void attempt_files_free(void *files);

struct attempt_logs_settings {
    const struct launch_config *config; /* borrowed, as all of this */
    const struct agent_preparation *preparation;
    const struct log *log;
    struct log_thread *log_thread; /* NULL when no stream is redirected */
    struct log_tree_attempt attempt;
    const struct attempt_own_files *own; /* by local rank; or NULL */
    int base_rank;                       /* the global rank of the first worker */
    bool is_first;                       /* no workers have run on this node yet */
};

struct attempt_logs {
    const struct attempt_logs_settings *settings;
    struct attempt_files *files;                      /* borrowed; NULL: there are none */
    struct log_filter *filters[ATTEMPT_STREAM_COUNT]; /* the log thread's */
    int null_fd;                                      /* for discarded streams; -1 until needed */
};

/* The files that are wanted; the caller frees them with attempt_files_free. */
struct attempt_files *attempt_logs_plan(const struct attempt_logs_settings *settings);

/* Takes over the files that attempt_files_make has made; what could not be made fails a first
 * attempt. NULL: the disk does not answer, and nobody waits for it any longer; `reason` says so.
 * `settings` and `files` outlive the logs, which are to be cleared also after a failure. */
__attribute__((warn_unused_result)) enum failure_code attempt_logs_init(struct attempt_logs *logs,
    const struct attempt_logs_settings *settings, struct attempt_files *files, const char *reason,
    struct failure *failure);
void attempt_logs_clear(struct attempt_logs *logs);

/* Where a worker may leave its error file; the caller frees it. NULL: nowhere. */
char *attempt_logs_error_file(const struct attempt_logs *logs, int local_rank);

/* The descriptor a worker gets for its stream, -1 for the agent's own. Close it with the function
 * below once the worker has it. */
__attribute__((warn_unused_result)) enum failure_code attempt_logs_open_stream(
    struct attempt_logs *logs, int local_rank, enum attempt_stream stream, int *out_fd,
    struct failure *failure);
void attempt_logs_close_stream(const struct attempt_logs *logs, int fd);

/* The error files of the workers of one attempt, read when the workers have ended. Judges nothing.
 *
 * Another thread reads a file, because the file may be on a dead disk. Nobody waits for it to learn
 * that a worker has ended: only what needs the words of the file waits (the account of a failure
 * for other nodes, the report), and only for a bounded time. A file that is read later than that is
 * still used in the report. On a disk that answers, the wait is only the time in which one thread
 * wakes another. */

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
