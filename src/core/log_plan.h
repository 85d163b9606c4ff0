/* SPDX-License-Identifier: BSD-3-Clause */
/* Where each stream of each worker goes, and with which prefix: decided from the launch
 * configuration alone, so that nothing is opened for a job whose settings contradict each other.
 * Paths are core/log_tree's, opening and writing is host/log_thread's. Matches
 * torch/distributed/elastic/multiprocessing/api.py DefaultLogsSpecs.reify and
 * torch/distributed/elastic/agent/server/local_elastic_agent.py (log line prefixes). */
#ifndef MUSTER_CORE_LOG_PLAN_H
#define MUSTER_CORE_LOG_PLAN_H

#include <stdbool.h>

#include "core/launch_config.h"

/* Ceiling of a prefix template, and of what it becomes, in bytes. */
#define LOG_PLAN_HEADER_CEILING 4096

enum log_destination {
    LOG_DESTINATION_INHERIT,          /* the agent's own stream, untouched */
    LOG_DESTINATION_DISCARD,          /* /dev/null: kept quiet by --local-ranks-filter */
    LOG_DESTINATION_FILE,             /* its log file */
    LOG_DESTINATION_FILE_AND_CONSOLE, /* its log file, and line by line on the agent's stream */
};

struct log_stream_plan {
    enum log_destination destination;
    bool is_filtered; /* matching lines also go to the attempt's filtered file */
};

/* Who the lines come from. Borrowed strings. */
struct log_worker {
    const char *role_name;
    const char *hostname; /* the short name, as gethostname gives it */
    int local_rank;
    int rank;
};

/* Whether the job writes anything below a log directory: false for --log-dir /dev/null. */
bool log_plan_has_directory(const struct launch_config *config);

/* Settings that contradict each other, or cannot be had. */
enum log_plan_problem {
    LOG_PLAN_FITS,
    LOG_PLAN_FILTERS_NEED_DIRECTORY, /* duplicate filters with --log-dir /dev/null */
    LOG_PLAN_HEADER_TOO_LONG,        /* the prefix template or what it becomes passes the ceiling */
};

/* What is wrong with the configuration for a worker, if anything; the strings of `worker` decide
 * how long a prefix gets. Checked before anything is started. */
enum log_plan_problem log_plan_check(
    const struct launch_config *config, const struct log_worker *worker);

/* A sentence for the user, without a full stop. */
const char *log_plan_problem_text(enum log_plan_problem problem);

/* The plan of one stream (LAUNCH_STREAM_STDOUT or _STDERR) of one worker. */
struct log_stream_plan log_plan_stream(
    const struct launch_config *config, int local_rank, int stream);

/* What stands before each line of this worker on the console: the template of the configuration
 * with role_name, local_rank, rank and hostname put in, "[<role_name><local_rank>]:" without one
 * (an empty one is none). The caller frees it. */
char *log_plan_header(const struct launch_config *config, const struct log_worker *worker);

/* Appends the names in the prefix template that stand for nothing, for a warning. */
void log_plan_unknown_names(const struct launch_config *config, struct text_list *out_names);

#endif
