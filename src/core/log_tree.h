/* SPDX-License-Identifier: BSD-3-Clause */
/* The names in a job's log directory, and nothing but names: creating and removing is
 * host/log_directory's. The tree is TorchElastic's
 * (torch/distributed/elastic/multiprocessing/api.py DefaultLogsSpecs):
 *
 *   <base>/<run id>_<8 random>/attempt_<restarts>/<local rank>/{stdout.log,stderr.log,error.json}
 *                                                 filtered_{stdout,stderr}.log
 *
 * with, of our own, <local rank>/hang_evidence.txt of a worker that had to be killed.
 *
 * but an attempt's directory is never used twice: a group that is started anew without using up a
 * restart, since nodes came or went, gets `attempt_<restarts>_round_<round>`, where PyTorch deletes
 * the earlier one's logs. */
#ifndef MUSTER_CORE_LOG_TREE_H
#define MUSTER_CORE_LOG_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

#define LOG_TREE_RANDOM_LENGTH 8
/* Longest name of one directory entry, in bytes (NAME_MAX of every Linux file system). */
#define LOG_TREE_NAME_MAXIMUM 255

enum log_tree_file {
    LOG_TREE_STDOUT,          /* <local rank>/stdout.log */
    LOG_TREE_STDERR,          /* <local rank>/stderr.log */
    LOG_TREE_ERROR,           /* <local rank>/error.json */
    LOG_TREE_HANG_EVIDENCE,   /* <local rank>/hang_evidence.txt */
    LOG_TREE_FILTERED_STDOUT, /* filtered_stdout.log, one for all ranks */
    LOG_TREE_FILTERED_STDERR, /* filtered_stderr.log */
};

/* Whether --log-dir asks for no files at all: the text "/dev/null", as upstream compares it. NULL
 * is not. */
bool log_tree_is_discarded(const char *log_dir);

/* Appends `path` made absolute with `working_directory`, without "." and empty parts; ".." stays,
 * as only the kernel knows where it leads. */
void log_tree_append_absolute(struct text *text, const char *working_directory, const char *path);

/* Appends "<run id>_<random>": in the run id every `/` and every control byte becomes `_`, and
 * what would pass LOG_TREE_NAME_MAXIMUM is cut at a character's (UTF-8) border. */
void log_tree_append_run_name(struct text *text, const char *run_id, const char *random);

/* One start of the workers. */
struct log_tree_attempt {
    int restart_count;
    int64_t round; /* of the rendezvous */
};

/* Appends the directory's name: "attempt_3" for `incarnation` 0, then, in case that is taken,
 * "attempt_3_round_7", "attempt_3_round_7.2", "attempt_3_round_7.3" … */
void log_tree_append_attempt_name(
    struct text *text, const struct log_tree_attempt *attempt, int incarnation);

/* The path of one file below an attempt's directory; the caller frees it. `local_rank` does not
 * matter for the filtered files. */
char *log_tree_file_path(const char *attempt_path, int local_rank, enum log_tree_file file);

#endif
