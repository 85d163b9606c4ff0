/* SPDX-License-Identifier: BSD-3-Clause */
/* Destination of all log records of the program. It formats them with the time, in TorchElastic's
 * line form, and writes them to stderr: directly at first, and through the log thread as soon as it
 * runs, so that a record never cuts a worker's line in two. Matches torch/_logging/_internal.py
 * TorchLogsFormatter and torch/distributed/elastic/utils/logging.py (LOGLEVEL). */
#ifndef MUSTER_HOST_LOG_LOG_SINK_H
#define MUSTER_HOST_LOG_LOG_SINK_H

#include <stdbool.h>

#include "base/log.h"
#include "base/text.h"
#include "host/log/log_thread.h"

struct log_sink;
struct log_thread;

/* `level` is the value of LOGLEVEL, or NULL for warnings and worse. A value that is no level causes
 * a record and counts as NULL. `stderr_fd` stays the caller's. */
struct log_sink *log_sink_new(const char *level, int stderr_fd);
/* Accepts NULL. */
void log_sink_free(struct log_sink *sink);

/* The log to pass to other modules. It belongs to the sink. Any thread may write to it. */
const struct log *log_sink_log(const struct log_sink *sink);

/* From now on records go through the thread. NULL switches back to direct writing; do that before
 * the thread is freed. */
void log_sink_use_thread(struct log_sink *sink, struct log_thread *thread);

/* Writes whole lines unchanged, in order with the records. It is used for the failure report.
 * Without the thread, a stderr that accepts nothing is waited for: up to five seconds for text, up
 * to one second for a record. After one such
 * timeout the text is lost, and nothing waits again until stderr accepts something. */
void log_sink_write_text(struct log_sink *sink, const char *text);

/* Shows one line on stderr, in the place of the one shown before, if stderr is a terminal, warnings
 * are written, and no thread writes them; NULL: shows none any more. Whatever else is written takes
 * the line away first. Returns whether a line is shown. */
bool log_sink_show_status(struct log_sink *sink, const char *line);

#endif
