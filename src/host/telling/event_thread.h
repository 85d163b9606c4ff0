/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes records into a file, or to a program, on a thread of its own, in the order in
 * which they were given, so that what does not answer delays nothing else. The memory for
 * waiting records is limited. Records that find no room are lost, and so are records that the disk
 * refuses. The first loss is logged, and at the end their number. A thread that still hangs on a
 * dead disk at the end is left behind; it owns all its data. A program has its standard input
 * closed at the end, or when this process dies, and is killed when it has not ended in time.
 *
 * Or each record is all of a file, which takes the place of the one before it (`replaces`). */
#ifndef MUSTER_HOST_TELLING_EVENT_THREAD_H
#define MUSTER_HOST_TELLING_EVENT_THREAD_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"
#include "base/duration.h"
#include "base/failure.h"
#include "base/log.h"
#include "base/text.h"
#include "host/loop/event_loop.h"

/* A file that records are appended to, each with one write. So several agents can share it, and a
 * reader never sees half a line of a living agent. A record that cannot be written is lost. A write
 * may block on a slow disk, so only that thread calls this. A FIFO that is not read, or is
 * read too slowly, is not waited for. */

struct event_file;

/* The maximum bytes of waiting records. */
#define EVENT_THREAD_CEILING ((size_t)4 * 1024 * 1024)

struct event_thread;

struct event_thread_settings {
    struct event_loop *loop;             /* the owner's; losses are noticed on it */
    const struct log *log;               /* losses are logged here; outlives the thread */
    const char *path;                    /* copied */
    const struct text_list *environment; /* of the program that `path` then names; NULL: a file */
    struct duration patience; /* how long to wait for a disk that does not answer, at the beginning
                                 and at the end */
    bool is_opened_later; /* the beginning waits for nothing, and no opening loses records, too */
    /* A file that would grow beyond so many bytes is renamed, to its name and ".1", and that before
     * it to ".2"; older ones go. 0: it grows. */
    size_t turn_at;
    /* Each record is a whole file: it replaces that at `path`, and one that waits. Nothing is
     * opened before. */
    bool replaces;
    const char *what; /* is lost, for people; NULL: events */
    /* For tests: replaces event_file_append. NULL: no replacement. */
    enum failure_code (*append)(
        struct event_file *file, struct slice record, struct failure *failure);
};

/* Opens the file, on the thread. FAILURE_SYSTEM with the path in the message, FAILURE_TIMEOUT when
 * it took too long. */
__attribute__((warn_unused_result)) enum failure_code event_thread_new(
    const struct event_thread_settings *settings, struct event_thread **out_thread,
    struct failure *failure);

/* Waits until everything given has been written and a program has ended, or until the patience is
 * over. Accepts NULL. */
void event_thread_free(struct event_thread *thread);

/* Appends one line with its newline; it is copied. Never waits. */
void event_thread_append(struct event_thread *thread, const char *record);

#endif
