/* SPDX-License-Identifier: BSD-3-Clause */
/* The thread that reads what workers write and puts it into log files and on the console, so that
 * neither a slow disk nor a stalled console ever holds up the agent or a worker. Workers write into
 * pipes, not into files: a full disk costs log lines, never a worker. Shares nothing with its
 * owner: commands go in through a queue, news comes back on the owner's event loop.
 *
 * - Log files get the workers' bytes untouched. When one cannot be written (disk full), that is
 *   said once, the worker goes on and its lines still reach the console; the file is tried again
 *   once a second at most, and how much is missing is said when it works again.
 * - On the console lines stay whole (core/line_splitter), prefixed, in the order of their stream.
 *   A console that is slower than the workers lags: what does not fit into the queue is read
 *   again from the log file later. A console that has closed is given up, which is said once.
 * - The agent's own records go through the same queue, so they never cut a line in two. */
#ifndef MUSTER_HOST_LOG_THREAD_H
#define MUSTER_HOST_LOG_THREAD_H

#include "base/duration.h"
#include "base/failure.h"
#include "base/log.h"
#include "base/text.h"
#include "host/event_loop.h"
#include "host/log_router.h"

struct log_thread;

/* What the thread works with. */
struct log_thread_settings {
    struct event_loop *loop; /* the owner's; callbacks and warnings happen on it */
    const struct log *log; /* where warnings about log files and consoles go; outlives the thread */
    int stdout_fd;         /* the consoles; they stay the caller's and their flags unchanged */
    int stderr_fd;
    struct tally *bytes; /* read from streams; outlives the thread; NULL: nobody counts */
};

/* One stream of one worker. Strings are copied. */
struct log_stream_spec {
    const char *path;          /* its log file; created or emptied, mode 0666 less the umask */
    enum log_console console;  /* where its lines also go, or LOG_CONSOLE_NONE */
    const char *header;        /* stands before each line there; may be NULL without console */
    struct log_filter *filter; /* gets the matching lines too; NULL: none; needs a console */
};

/* Starts the thread, with all signals blocked in it. SIGPIPE must be ignored or blocked in the
 * process. FAILURE_SYSTEM when the thread or its descriptors cannot be had. */
__attribute__((warn_unused_result)) enum failure_code log_thread_new(
    const struct log_thread_settings *settings, struct log_thread **out_thread,
    struct failure *failure);

/* Ends the thread and frees everything. What is not on the console by then is given up: see
 * log_thread_drain. No callback comes after this; warnings not yet logged still are. Accepts NULL.
 */
void log_thread_free(struct log_thread *thread);

/* Creates the file for lines (with header) that contain one of the needles, of all streams that are
 * opened with it until the attempt is finished. FAILURE_SYSTEM names the path. */
__attribute__((warn_unused_result)) enum failure_code log_thread_open_filter(
    struct log_thread *thread, const char *path, const struct text_list *needles,
    struct log_filter **out_filter, struct failure *failure);

/* Creates the log file and a pipe into it. `*out_fd` is the end the worker gets as its stdout or
 * stderr (close-on-exec, blocking); the caller closes it once the worker has it. FAILURE_SYSTEM
 * names the path; then nothing was opened. */
__attribute__((warn_unused_result)) enum failure_code log_thread_open_stream(
    struct log_thread *thread, const struct log_stream_spec *spec, int *out_fd,
    struct failure *failure);

/* The workers of this attempt are gone: takes what their pipes still hold, shows unfinished last
 * lines and closes every stream and filter opened so far, also pipes that a stray descendant still
 * holds (its later writes fail). Then calls `finished` on the owner's loop. Does not wait for the
 * console. */
void log_thread_finish_attempt(
    struct log_thread *thread, void (*finished)(void *context), void *context);

/* Puts text (whole lines) on a console, after what was given before; a record behind lines of a
 * finished attempt waits for them. May be called from every thread. Dropped, and counted in a later
 * warning, when a stalled console leaves no room. */
void log_thread_write_record(struct log_thread *thread, enum log_console console, const char *text);

/* Calls `drained` on the owner's loop once the consoles have taken everything given so far, or have
 * taken nothing at all for `patience`: then the rest is given up, and a warning says how much. */
void log_thread_drain(struct log_thread *thread, struct duration patience,
    void (*drained)(void *context), void *context);

#endif
