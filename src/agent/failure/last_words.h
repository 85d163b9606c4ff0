/* SPDX-License-Identifier: BSD-3-Clause */
/* The last lines of a failed worker's log file, for the report and for who restarts. The file may
 * be on a dead disk, so another thread reads it, and nobody waits for it for longer than some
 * seconds. */
#ifndef MUSTER_AGENT_FAILURE_LAST_WORDS_H
#define MUSTER_AGENT_FAILURE_LAST_WORDS_H

#include "agent/workers/agent_workers.h"
#include "base/log.h"

/* What is at the end of `path`, see last_lines_append; the caller frees it. NULL where that cannot
 * be read in time, with a warning, and where `path` is NULL. Runs the loop of the workers, all of
 * whom are gone, until the log thread has written what they wrote. */
char *last_words_read(struct agent_workers *workers, const char *path, const struct log *log);

/* Tells, at a restart, what a failed worker wrote last, and where. Nobody waits for it. */
struct last_words;

/* Borrows all of it. */
struct last_words *last_words_new(
    struct event_loop *loop, struct agent_workers *workers, const struct log *log);
/* Before the workers. Accepts NULL. */
void last_words_free(struct last_words *words);

/* This worker has failed, and a restart follows. Logs one line when all workers have ended, where
 * its stderr goes to a file. */
void last_words_expect(struct last_words *words, int local_rank);

#endif
