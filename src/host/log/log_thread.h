/* SPDX-License-Identifier: BSD-3-Clause */
/* The thread that reads what workers write and puts it into log files and on the console, so that
 * neither a slow disk nor a stalled console delays the agent or a worker. Workers write into pipes,
 * not into files: a full disk costs log lines, never a worker. The thread shares nothing with its
 * owner. Commands go in through a queue; answers come back on the owner's event loop.
 *
 * - Log files get the workers' bytes unchanged. When a log file cannot be written (disk full),
 * there is one warning; the worker goes on and its lines still reach the console. The next attempt
 * comes after a second at the earliest. When the file works again, a warning says how much is
 * missing.
 * - Lines on the console stay whole (core/workers/log_plan), have a prefix, and keep the order of
 * their stream. A console that is slower than the workers lags behind: lines that do not fit into
 * the queue are read again from the log file later. A console that has closed is given up, with one
 * warning.
 * - The agent's own records go through the same queue, so they never cut a line in two. */
#ifndef MUSTER_HOST_LOG_LOG_THREAD_H
#define MUSTER_HOST_LOG_LOG_THREAD_H

#include <stdbool.h>

#include "base/duration.h"
#include "base/failure.h"
#include "base/log.h"
#include "base/text.h"
#include "host/log/log_stream.h"
#include "host/loop/event_loop.h"

struct log_thread;

/* What the thread works with. */
struct log_thread_settings {
    struct event_loop *loop; /* the owner's; callbacks and warnings come on it */
    const struct log *log; /* where warnings about log files and consoles go; outlives the thread */
    int stdout_fd; /* the consoles; the descriptors stay the caller's and their flags unchanged */
    int stderr_fd;
    /* How long the thread may give no sign of life in the end, before it is left behind. */
    struct duration patience;
    struct tally *bytes; /* counts the bytes read from streams; outlives the thread; may be NULL */
    /* log_thread_free calls it, in order, for each record that a hanging thread has not taken. If
     * it is NULL, these records are lost. */
    void (*rescue)(void *context, const char *text);
    void *context;
};

/* Starts the thread, with all signals blocked in it. SIGPIPE must be ignored or blocked in the
 * process. FAILURE_SYSTEM when the thread or its descriptors cannot be created. */
__attribute__((warn_unused_result)) enum failure_code log_thread_new(
    const struct log_thread_settings *settings, struct log_thread **out_thread,
    struct failure *failure);

/* Ends the thread and frees everything. Text that is not on the console by then is discarded; see
 * log_thread_drain. No callback but `rescue` comes after this, but pending warnings are still
 * logged; the log must not lead through this thread any more. Returns false when the thread hangs
 * (on a dead disk). It is then left behind with everything that it uses; the tally must live on.
 * Accepts NULL (true). */
bool log_thread_free(struct log_thread *thread);

/* A filter for all streams that are added with it until the attempt is finished. */
void log_thread_add_filter(struct log_thread *thread, struct log_filter *filter_taken);

/* A stream whose lines also go to the console, or LOG_CONSOLE_NONE, and to its filter, which needs
 * a console. The filter must have been added before. */
void log_thread_add_stream(
    struct log_thread *thread, struct log_stream *stream_taken, enum log_console console);

/* To be called when the workers of an attempt have ended. Reads what their pipes still hold, shows
 * unfinished last lines, and closes every stream and filter added so far. A pipe that a surviving
 * descendant still holds is closed, too; its later writes fail. Then calls `finished` on the
 * owner's loop. Does not wait for the console. */
void log_thread_finish_attempt(
    struct log_thread *thread, void (*finished)(void *context), void *context);

/* Puts text (whole lines) on a console, after everything given before. A record that follows lines
 * of a finished attempt waits for them. Any thread may call this. When a stalled console leaves no
 * room, the text is dropped, and a later warning counts it. */
void log_thread_write_record(struct log_thread *thread, enum log_console console, const char *text);

/* Calls `drained` on the owner's loop when the consoles have accepted everything given so far. If
 * they accept nothing at all for `patience`, the rest is discarded, a warning says how much, and
 * `drained` is called. It is also called when the thread gives no sign of life, because it hangs.
 */
void log_thread_drain(struct log_thread *thread, struct duration patience,
    void (*drained)(void *context), void *context);

#endif
