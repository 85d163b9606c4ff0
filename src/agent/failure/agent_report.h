/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells why a job failed. Of a worker group: takes what agent_findings gathers, lets
 * core/worker_group name the root cause, and puts the result where people and parents look: on
 * stderr, in the launcher's own TORCHELASTIC_ERROR_FILE, and in the exit status. Of a launcher that
 * could not go on: leaves that file alone. Matches torch/distributed/launcher/api.py launch_agent,
 * and ErrorHandler.dump_error_file and record_exception. */
#ifndef MUSTER_AGENT_FAILURE_AGENT_REPORT_H
#define MUSTER_AGENT_FAILURE_AGENT_REPORT_H

#include "agent/failure/agent_findings.h"
#include "base/log.h"
#include "base/text.h"
#include "core/launch/launch_config.h"
#include "core/workers/worker_group.h"

struct agent_report_settings {
    const struct launch_config *config; /* borrowed, as all of this */
    struct agent_findings_sources sources;
    struct agent_workers *workers; /* the same; all gone, for their last words */
    const struct log *log;
    const struct failure_account *root_cause; /* of the job, when it is on another node; or NULL */
    const char *parent_error_file; /* the launcher's own TORCHELASTIC_ERROR_FILE, or NULL */
};

/* Appends the report on `group`, which must have a failure unless there is a root cause elsewhere,
 * to `out_text` (timestamps of error files are noted in `group`), writes the parent's error file,
 * and returns the launcher's exit status. Where the root cause is elsewhere it comes first, and
 * each failure on this node is judged against it. */
int agent_report_failures(const struct agent_report_settings *settings, struct worker_group *group,
    struct text *out_text);

/* Leaves the parent's error file of a launcher that failed of itself; `error` is the Python name of
 * such an error. Nothing where `parent_error_file` is NULL. */
void agent_report_launcher_failure(
    const char *parent_error_file, const struct log *log, const char *error, const char *message);

/* The exit status of a job that a signal to the launcher has ended. */
int agent_report_signal_status(const struct launch_config *config, int signal);

#endif
