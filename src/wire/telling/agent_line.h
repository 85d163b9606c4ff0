/* SPDX-License-Identifier: BSD-3-Clause */
/* What an agent tells the program that has started it: lines, each a letter and a JSON document.
 * Both ends are Muster's, and of one version.
 *
 *   E  a record of event_json, of the agent, a worker or the rendezvous
 *   M  a metric
 *   G  the worker group, whenever its state has changed
 *   A  the node asks its program where it is to be
 *   W  a worker that has ended by itself; F a failure of this node; C the job's root cause
 *   R  how it ended. It is the last line, and W, F and C belong to it. */
#ifndef MUSTER_WIRE_TELLING_AGENT_LINE_H
#define MUSTER_WIRE_TELLING_AGENT_LINE_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "base/text.h"
#include "core/telling/event_record.h"
#include "core/telling/job_metrics.h"

#define AGENT_LINE_MAXIMUM ((size_t)1024 * 1024)

enum agent_line_kind {
    AGENT_LINE_EVENT = 'E',
    AGENT_LINE_METRIC = 'M',
    AGENT_LINE_GROUP = 'G',
    AGENT_LINE_ASK = 'A',
    AGENT_LINE_WORKER = 'W',
    AGENT_LINE_FAILURE = 'F',
    AGENT_LINE_ROOT_CAUSE = 'C',
    AGENT_LINE_RESULT = 'R',
};

/* Append one line and its newline. `record` is a line of event_json, with its newline. */
void agent_line_write_event(const char *record, struct text *out);
void agent_line_write_metric(const struct metric *metric, struct text *out);
void agent_line_write_group(const struct run_group *group, struct text *out);

/* Of a node that its program places: it asks for a round, or to pass the exit barrier. */
void agent_line_write_ask(bool is_barrier, int attempt, struct text *out);

/* Appends all lines of a result. */
void agent_line_write_result(const struct run_result *result, struct text *out);

/* A metric of a line without its letter; FAILURE_MALFORMED, FAILURE_LIMIT. The caller frees the
 * names. */
__attribute__((warn_unused_result)) enum failure_code agent_line_read_metric(
    struct slice document, struct metric *out_metric);

/* A worker group of a line without its letter; FAILURE_MALFORMED, FAILURE_LIMIT. */
__attribute__((warn_unused_result)) enum failure_code agent_line_read_group(
    struct slice document, struct run_group *out_group);

/* The same of a line without its letter; FAILURE_MALFORMED, FAILURE_LIMIT. */
__attribute__((warn_unused_result)) enum failure_code agent_line_read_ask(
    struct slice document, bool *out_is_barrier, int *out_attempt);

/* Adds what a line of kind W, F, C or R says, without its letter, to `result`; `*out_is_complete`
 * becomes true with R. FAILURE_MALFORMED and FAILURE_LIMIT leave `result` as it was. */
__attribute__((warn_unused_result)) enum failure_code agent_line_read_result(
    char kind, struct slice document, struct run_result *result, bool *out_is_complete);

#endif
