/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes records into a file (host/event_file) on a thread of its own, in the order in which they
 * were given, so that a disk that does not answer holds up nobody. What waits is bounded: records
 * that find no room are lost, as are those that the disk refuses; that is said once, and at the end
 * how many they were. A thread that hangs on a dead disk at the end is left behind, with all that
 * is its own. */
#ifndef MUSTER_HOST_EVENT_THREAD_H
#define MUSTER_HOST_EVENT_THREAD_H

#include <stddef.h>

#include "base/bytes.h"
#include "base/duration.h"
#include "base/failure.h"
#include "base/log.h"
#include "host/event_file.h"
#include "host/event_loop.h"

/* Bytes of records that may wait. */
#define EVENT_THREAD_CEILING ((size_t)4 * 1024 * 1024)

struct event_thread;

struct event_thread_settings {
    struct event_loop *loop; /* the owner's; losses are noticed on it */
    const struct log *log;   /* where they are said; outlives the thread */
    const char *path;        /* copied */
    struct duration
        patience; /* with a disk that does not answer, at the beginning and at the end */
    /* For tests: what stands in for event_file_append. NULL: that. */
    enum failure_code (*append)(
        struct event_file *file, struct slice record, struct failure *failure);
};

/* Opens the file, on the thread. FAILURE_SYSTEM with the path in the message, FAILURE_TIMEOUT when
 * that took too long. */
__attribute__((warn_unused_result)) enum failure_code event_thread_new(
    const struct event_thread_settings *settings, struct event_thread **out_thread,
    struct failure *failure);

/* Once everything given has been written, or the disk has had its time. Accepts NULL. */
void event_thread_free(struct event_thread *thread);

/* One line with its newline; copied. Never waits. */
void event_thread_append(struct event_thread *thread, const char *record);

#endif
