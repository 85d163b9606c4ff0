/* SPDX-License-Identifier: BSD-3-Clause */
/* A log file that is appended to. When the disk is full or fails, only the bytes that it did not
 * accept are lost. They are counted, and the next attempt comes after a second at the earliest.
 * Writes may block on the disk, so only the log thread calls this. */
#ifndef MUSTER_HOST_LOG_LOG_FILE_H
#define MUSTER_HOST_LOG_LOG_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/duration.h"
#include "base/failure.h"

struct log_file {
    int fd;
    char *path;
    uint64_t length; /* bytes written */
    uint64_t lost;   /* bytes the disk did not accept */
    bool is_failing;
    int system_error; /* errno of the last failure, or 0 */
    struct instant retry_at;
};

/* Creates or empties the file; its mode is 0666 less the umask. FAILURE_SYSTEM names the path. */
__attribute__((warn_unused_result)) enum failure_code log_file_open(
    const char *path, struct log_file *out_file, struct failure *failure);
/* Closes the file. A zeroed struct that was never opened is accepted when its fd is -1. */
void log_file_close(struct log_file *file);

/* Appends the bytes, or as many as the disk accepts. */
void log_file_append(struct log_file *file, struct slice bytes, struct instant now);

#endif
