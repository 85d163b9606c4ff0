/* SPDX-License-Identifier: BSD-3-Clause */
/* Where each stream of each worker goes, and with which prefix: decided from the launch
 * configuration alone, so that nothing is opened for a job whose settings contradict each other.
 * Paths are core/log_tree's, opening and writing is host/log_thread's. Matches
 * torch/distributed/elastic/multiprocessing/api.py DefaultLogsSpecs.reify and
 * torch/distributed/elastic/agent/server/local_elastic_agent.py (log line prefixes). */
#ifndef MUSTER_CORE_LOG_PLAN_H
#define MUSTER_CORE_LOG_PLAN_H

#include <stdbool.h>

#include "base/failure.h"
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

/* FAILURE_INVALID with a sentence for the user when the settings contradict each other
 * (duplicate filters without a log directory) or when the prefix template or what it becomes for
 * this node passes LOG_PLAN_HEADER_CEILING. `hostname` as in struct log_worker. */
__attribute__((warn_unused_result)) enum failure_code log_plan_check(
    const struct launch_config *config, const char *hostname, struct failure *failure);

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
