/* SPDX-License-Identifier: BSD-3-Clause */
/* A file that records are appended to, each with one write. So several agents can share it, and a
 * reader never sees half a line of a living agent. A record that cannot be written is lost. A write
 * may block on a slow disk, so only host/event_thread calls this. A FIFO that is not read, or is
 * read too slowly, is not waited for. */
#ifndef MUSTER_HOST_TELLING_EVENT_FILE_H
#define MUSTER_HOST_TELLING_EVENT_FILE_H

#include "base/bytes.h"
#include "base/failure.h"

struct event_file;

/* Creates the file when it is missing. FAILURE_SYSTEM with the path in the message,
 * FAILURE_INVALID when it is another user's (host/loop/shared_place). */
__attribute__((warn_unused_result)) enum failure_code event_file_open(
    const char *path, struct event_file **out_file, struct failure *failure);
/* Accepts NULL. */
void event_file_free(struct event_file *file);

/* FAILURE_SYSTEM says why the record, or a part of it, was lost. */
__attribute__((warn_unused_result)) enum failure_code event_file_append(
    struct event_file *file, struct slice record, struct failure *failure);

#endif
