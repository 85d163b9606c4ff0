/* SPDX-License-Identifier: BSD-3-Clause */
/* Tells why a job failed. Of a worker group: takes what agent_findings gathers, lets
 * core/worker_group name the root cause, and puts the result where people and parents look: on
 * stderr, in the launcher's own TORCHELASTIC_ERROR_FILE, and in the exit status. Of a launcher that
 * could not go on: leaves that file alone. Matches torch/distributed/launcher/api.py launch_agent,
 * and ErrorHandler.dump_error_file and record_exception. */
#ifndef MUSTER_AGENT_FAILURE_AGENT_REPORT_H
#define MUSTER_AGENT_FAILURE_AGENT_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/workers/agent_preparation.h"
#include "agent/workers/agent_workers.h"
#include "base/bytes.h"
#include "base/log.h"
#include "base/text.h"
#include "core/failure/failure_report.h"
#include "core/launch/launch_config.h"
#include "core/workers/worker_group.h"

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
/* Appends the line of this process, if it is the one that was expected last, and has written one.
 * False: it is not known yet. */
bool last_words_append(const struct last_words *words, int64_t pid, struct text *out);
/* Calls back each time such a line is known. */
void last_words_notify(struct last_words *words, void (*known)(void *context), void *context);

/* What a failed worker of this node left behind, gathered into an account of its failure: its error
 * file as it was read when the worker ended, how it ended, what the kernel knows, and its place in
 * the job. Opens nothing, judges nothing. */

struct agent_finding {
    struct failure_account account;
    bool has_error;          /* it wrote an error file that could be read: … */
    struct slice error_file; /* the workers'; good until the loop runs on */
};

/* Where findings come from; borrowed. */
struct agent_findings_sources {
    const struct agent_preparation *preparation;
    const struct agent_workers *workers;
    const struct node_placement *placement; /* of the workers */
};

/* Looks into the failure at `index` of the group; the time of its error file is noted in `group`.
 * agent_finding_clear when done. */
void agent_finding_collect(const struct agent_findings_sources *sources, struct worker_group *group,
    size_t index, struct agent_finding *out_finding);
void agent_finding_clear(struct agent_finding *finding);

struct agent_report_settings {
    const struct launch_config *config; /* borrowed, as all of this */
    struct agent_findings_sources sources;
    struct agent_workers *workers; /* the same; all gone, for their last words */
    const struct log *log;
    const struct failure_account *root_cause; /* of the job, when it is on another node; or NULL */
    bool is_shown;                            /* to a user, who may miss words in it */
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
