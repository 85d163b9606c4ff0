/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/telling/event_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory.h"
#include "host/loop/shared_place.h"

struct event_file {
    int fd;
    bool is_mid_line; /* the disk accepted only a part of the last record */
};

enum failure_code event_file_open(
    const char *path, struct event_file **out_file, struct failure *failure) {
    struct failure reason;
    int fd =
        shared_place_open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, &reason);
    if (fd < 0) {
        return failure_set(
            failure, reason.code, "cannot write events to '%s': %s", path, reason.message);
    }
    struct event_file *file = memory_allocate(sizeof *file);
    file->fd = fd;
    *out_file = file;
    return FAILURE_NONE;
}

void event_file_free(struct event_file *file) {
    if (file != NULL) {
        close(file->fd);
        free(file);
    }
}

/* Writes as much as is taken. Why the rest is not taken is asked by writing it: a write that is cut
 * short does not say whether the disk, the quota or the limit on file sizes is to blame. Returns 0
 * or an errno. */
static int write_all(int fd, struct slice bytes, size_t *out_written) {
    *out_written = 0;
    while (*out_written < bytes.length) {
        ssize_t count = write(fd, bytes.data + *out_written, bytes.length - *out_written);
        if (count == 0 || (count < 0 && errno != EINTR)) {
            return count == 0 ? EIO : errno;
        }
        *out_written += count > 0 ? (size_t)count : 0;
    }
    return 0;
}

/* A full disk may accept a part of a record. The next record then begins with a newline. */
enum failure_code event_file_append(
    struct event_file *file, struct slice record, struct failure *failure) {
    size_t written;
    if (file->is_mid_line && write_all(file->fd, slice_from_string("\n"), &written) == 0) {
        file->is_mid_line = false;
    }
    int error = write_all(file->fd, record, &written);
    if (error == 0) {
        return FAILURE_NONE;
    }
    file->is_mid_line = file->is_mid_line || written > 0;
    return failure_set_system(failure, error, "write");
}
