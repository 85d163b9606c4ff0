/* SPDX-License-Identifier: BSD-3-Clause */
/* The names in the log directory of a job. This module has only names; host/log_directory creates
 * and removes files. The tree is TorchElastic's (torch/distributed/elastic/multiprocessing/api.py
 * DefaultLogsSpecs):
 *
 *   <base>/<run id>_<8 random>/attempt_<restarts>/<local rank>/{stdout.log,stderr.log,error.json}
 *                                                 filtered_{stdout,stderr}.log
 *
 * Muster differs from it in two ways. <local rank>/hang_evidence.txt has the evidence of a worker
 * that had to be killed. And the directory of an attempt is never used twice: when nodes came or
 * went, the workers start again without using a restart, and get the directory
 * `attempt_<restarts>_round_<round>`. There PyTorch deletes the logs of the earlier start. */
#ifndef MUSTER_CORE_WORKERS_LOG_TREE_H
#define MUSTER_CORE_WORKERS_LOG_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

#define LOG_TREE_RANDOM_LENGTH 8
/* The longest name of a directory entry, in bytes (NAME_MAX of every Linux file system). */
#define LOG_TREE_NAME_MAXIMUM 255

enum log_tree_file {
    LOG_TREE_STDOUT,          /* <local rank>/stdout.log */
    LOG_TREE_STDERR,          /* <local rank>/stderr.log */
    LOG_TREE_ERROR,           /* <local rank>/error.json */
    LOG_TREE_HANG_EVIDENCE,   /* <local rank>/hang_evidence.txt */
    LOG_TREE_FILTERED_STDOUT, /* filtered_stdout.log, one for all ranks */
    LOG_TREE_FILTERED_STDERR, /* filtered_stderr.log */
};

/* Whether --log-dir asks for no files at all: it is exactly the text "/dev/null", as in torchrun.
 * NULL asks for files. */
bool log_tree_is_discarded(const char *log_dir);

/* Appends `path`, made absolute with `working_directory`, without "." and empty parts. ".." stays,
 * because only the kernel knows where it leads. */
void log_tree_append_absolute(struct text *text, const char *working_directory, const char *path);

/* Appends "<run id>_<random>". In the run id every `/` and every control byte becomes `_`. A run id
 * that is too long for LOG_TREE_NAME_MAXIMUM is cut between two UTF-8 characters. */
void log_tree_append_run_name(struct text *text, const char *run_id, const char *random);

/* One start of the workers. */
struct log_tree_attempt {
    int restart_count;
    int64_t round; /* of the rendezvous */
};

/* Appends the name of the directory: "attempt_3" for `incarnation` 0. The caller tries the next
 * incarnation when the name exists already: "attempt_3_round_7", "attempt_3_round_7.2",
 * "attempt_3_round_7.3" … */
void log_tree_append_attempt_name(
    struct text *text, const struct log_tree_attempt *attempt, int incarnation);

/* The path of one file below the directory of an attempt. The caller frees it. `local_rank` is
 * ignored for the filtered files. */
char *log_tree_file_path(const char *attempt_path, int local_rank, enum log_tree_file file);

#endif
