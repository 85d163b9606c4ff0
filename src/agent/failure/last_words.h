/* SPDX-License-Identifier: BSD-3-Clause */
/* The last lines of a failed worker's log file, for the report. The file may be on a dead disk, so
 * another thread reads it, and nobody waits for it for longer than some seconds. */
#ifndef MUSTER_AGENT_FAILURE_LAST_WORDS_H
#define MUSTER_AGENT_FAILURE_LAST_WORDS_H

#include "agent/workers/agent_workers.h"
#include "base/log.h"

/* What is at the end of `path`, see last_lines_append; the caller frees it. NULL where that cannot
 * be read in time, with a warning, and where `path` is NULL. Runs the loop of the workers, all of
 * whom are gone, until the log thread has written what they wrote. */
char *last_words_read(struct agent_workers *workers, const char *path, const struct log *log);

#endif
