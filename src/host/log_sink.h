/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the whole program's log records go: formats them with the time, in TorchElastic's line
 * form, and writes them to stderr, directly at first and through the log thread once there is one,
 * so that they never cut a worker's line in two. Matches torch/_logging/_internal.py
 * TorchLogsFormatter and torch/distributed/elastic/utils/logging.py (LOGLEVEL). */
#ifndef MUSTER_HOST_LOG_SINK_H
#define MUSTER_HOST_LOG_SINK_H

#include "base/log.h"

struct log_sink;
struct log_thread;

/* `level` is the value of LOGLEVEL, or NULL for warnings and worse; a value that is no level is
 * said in a record and counts as NULL. `stderr_fd` stays the caller's. */
struct log_sink *log_sink_new(const char *level, int stderr_fd);
/* Accepts NULL. */
void log_sink_free(struct log_sink *sink);

/* The log to hand down; belongs to the sink. Any thread may write to it. */
const struct log *log_sink_log(const struct log_sink *sink);

/* From now on through the thread; NULL: directly again, before the thread is freed. */
void log_sink_use_thread(struct log_sink *sink, struct log_thread *thread);

/* Text as it is (whole lines), in order with the records: the failure report. A stderr that takes
 * nothing is waited for up to five seconds when written to directly, one second for a record, and
 * not again until it takes something; then the text is lost. */
void log_sink_write_text(struct log_sink *sink, const char *text);

#endif
