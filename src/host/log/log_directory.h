/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes the directories of a job's logs and error files (names: core/workers/log_plan.h); opens and
 * writes no log. Made when the first workers start, kept for all attempts, never emptied. */
#ifndef MUSTER_HOST_LOG_LOG_DIRECTORY_H
#define MUSTER_HOST_LOG_LOG_DIRECTORY_H

#include <stdbool.h>

#include "base/duration.h"
#include "base/failure.h"
#include "core/workers/log_plan.h"
#include "host/loop/blocking_pool.h"
#include "host/loop/files.h"

/* A job's directory on this node. Zeroed, and with --log-dir /dev/null: no directory at all. */
struct log_directory {
    char *base_path;           /* absolute; NULL: none */
    char *run_path;            /* base_path/<run id>_<random>; NULL: none */
    bool is_temporary;         /* base_path was made here because none was given */
    struct directory_tree run; /* which directory run_path is */
};

/* Makes (parents too) or uses `log_dir`; NULL makes "torchelastic_<8 random>", mode 0700, in the
 * first usable of $TMPDIR, $TEMP, $TMP, /tmp, /var/tmp, /usr/tmp and the working directory, as
 * Python's tempfile does. Below it, makes the run's directory, mode 0700. Failures name the path:
 * FAILURE_INVALID when it is something else than a directory, FAILURE_LIMIT when it is too long,
 * FAILURE_SYSTEM otherwise (not writable, disk full, …); what was made before the failure is
 * removed again if it was temporary. The disk may be dead, so another thread does it, and is left
 * behind when the patience is over: then nothing is opened, and FAILURE_TIMEOUT says so
 * (FAILURE_CANCELLED where the watch did not go on). The caller clears the result. */
__attribute__((warn_unused_result)) enum failure_code log_directory_open_within(
    struct duration patience, const struct blocking_watch *watch, const char *log_dir,
    const char *run_id, struct log_directory *out_directory, struct failure *failure);

/* At the end of a job: when the base directory was made here (no --log-dir) and nobody wrote any
 * file below it, removes it with all the empty directories in it, which PyTorch leaves behind;
 * otherwise leaves everything. By another thread, too: what is there stays when the patience is
 * over. */
void log_directory_remove_if_empty_within(
    struct duration patience, const struct log_directory *directory);

/* The caller clears the copy. */
void log_directory_copy(const struct log_directory *directory, struct log_directory *out_copy);
void log_directory_clear(struct log_directory *directory);

/* These wait for the disk: call them from a thread that nothing depends on
 * (host/loop/blocking_pool). */

/* Makes the directory anew at its old path, if it was removed meanwhile; `*out_is_renewed` tells.
 * Fails as log_directory_open_within does, and with FAILURE_INVALID when what is there now may be
 * another user's. */
__attribute__((warn_unused_result)) enum failure_code log_directory_renew(
    const struct log_directory *directory, bool *out_is_renewed, struct failure *failure);

/* Makes the directory of one start of the workers and in it one per local rank; an existing one is
 * left alone and the next free name taken. `*out_path` is the attempt's directory (the caller
 * frees it), NULL when the directory is none; log_tree_file_path() names the files in it. */
__attribute__((warn_unused_result)) enum failure_code log_directory_begin_attempt(
    const struct log_directory *directory, const struct log_tree_attempt *attempt, int worker_count,
    char **out_path, struct failure *failure);

#endif
