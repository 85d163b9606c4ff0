/* SPDX-License-Identifier: BSD-3-Clause */
/* One log file being appended to. A disk that is full (or fails) costs the bytes it did not take
 * and nothing else: they are counted, and the file is tried again once a second at most. Writes
 * wait for the disk: only the log thread calls this. */
#ifndef MUSTER_HOST_LOG_FILE_H
#define MUSTER_HOST_LOG_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/duration.h"
#include "base/failure.h"

struct log_file {
    int fd;
    char *path;
    uint64_t length; /* bytes written */
    uint64_t lost;   /* bytes the disk did not take */
    bool is_failing;
    int system_error; /* of the last failure, or 0 */
    struct instant retry_at;
};

/* Creates or empties the file, mode 0666 less the umask. FAILURE_SYSTEM names the path. */
__attribute__((warn_unused_result)) enum failure_code log_file_open(
    const char *path, struct log_file *out_file, struct failure *failure);
/* Also for a zeroed one that was never opened: its fd must then be -1. */
void log_file_close(struct log_file *file);

/* Appends the bytes, or as many as the disk takes. */
void log_file_append(struct log_file *file, struct slice bytes, struct instant now);

#endif
