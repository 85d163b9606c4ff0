/* SPDX-License-Identifier: BSD-3-Clause */
/* The directories and log files of one attempt, made in one go on a thread that a dead disk may
 * hold up (host/loop/errands). So this owns everything that it works with. attempt_logs decides
 * which files are wanted, and uses them. */
#ifndef MUSTER_AGENT_WORKERS_ATTEMPT_FILES_H
#define MUSTER_AGENT_WORKERS_ATTEMPT_FILES_H

#include <stdbool.h>

#include "base/failure.h"
#include "base/text.h"
#include "core/workers/log_plan.h"
#include "host/log/log_directory.h"
#include "host/log/log_stream.h"

enum attempt_stream {
    ATTEMPT_STDOUT,
    ATTEMPT_STDERR,
    ATTEMPT_STREAM_COUNT,
};

/* One stream of one worker. */
struct attempt_file {
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

/* Nothing is wanted yet. */
struct attempt_files *attempt_files_new(int worker_count);
/* Makes what is wanted, until the first failure. On any thread. */
void attempt_files_make(void *files);
/* Closes what was made and not taken. */
void attempt_files_free(void *files);

#endif
