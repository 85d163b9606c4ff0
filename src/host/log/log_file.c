/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/log/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"

#define RETRY_MILLISECONDS 1000

enum failure_code log_file_open(
    const char *path, struct log_file *out_file, struct failure *failure) {
    /* O_APPEND: if another program truncates the file to save space, no hole of zeros appears. */
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666);
    if (fd < 0) {
        return failure_set_system(failure, errno, "cannot create the log file %s", path);
    }
    *out_file = (struct log_file){.fd = fd, .path = memory_duplicate_string(path)};
    return FAILURE_NONE;
}

static void note_failure(struct log_file *file, int system_error, struct instant now) {
    file->is_failing = true;
    file->system_error = system_error;
    file->retry_at = instant_after(now, duration_from_milliseconds(RETRY_MILLISECONDS));
}

void log_file_close(struct log_file *file) {
    if (file->fd >= 0) {
        close(file->fd);
    }
    file->fd = -1;
    free(file->path);
    file->path = NULL;
}

void log_file_append(struct log_file *file, struct slice bytes, struct instant now) {
    if (file->is_failing && instant_is_before(now, file->retry_at)) {
        file->lost += bytes.length;
        return;
    }
    file->is_failing = false;
    while (bytes.length > 0) {
        ssize_t written = write(file->fd, bytes.data, bytes.length);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written < 0) {
            note_failure(file, errno, now);
            file->lost += bytes.length;
            return;
        }
        file->length += (uint64_t)written;
        bytes.data += written;
        bytes.length -= (size_t)written;
    }
}
