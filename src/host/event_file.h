/* SPDX-License-Identifier: BSD-3-Clause */
/* A file that records are appended to, one write each, so that several agents can share it and a
 * reader never sees half a line of a living one. What cannot be written is lost. Waits for a slow
 * disk, and is therefore called by host/event_thread alone; a FIFO that nobody reads, or reads too
 * slowly, is not waited for. */
#ifndef MUSTER_HOST_EVENT_FILE_H
#define MUSTER_HOST_EVENT_FILE_H

#include "base/bytes.h"
#include "base/failure.h"

struct event_file;

/* Makes the file where there is none. FAILURE_SYSTEM with the path in the message. */
__attribute__((warn_unused_result)) enum failure_code event_file_open(
    const char *path, struct event_file **out_file, struct failure *failure);
/* Accepts NULL. */
void event_file_free(struct event_file *file);

/* FAILURE_SYSTEM says why the record, or a part of it, is lost. */
__attribute__((warn_unused_result)) enum failure_code event_file_append(
    struct event_file *file, struct slice record, struct failure *failure);

#endif
