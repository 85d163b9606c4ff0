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

static ssize_t write_once(int fd, const void *data, size_t length) {
    ssize_t count;
    do {
        count = write(fd, data, length);
    } while (count < 0 && errno == EINTR);
    return count;
}

/* A full disk may accept a part of a record. The next record then begins with a newline. */
enum failure_code event_file_append(
    struct event_file *file, struct slice record, struct failure *failure) {
    if (file->is_mid_line && write_once(file->fd, "\n", 1) == 1) {
        file->is_mid_line = false;
    }
    ssize_t count = write_once(file->fd, record.data, record.length);
    if (count == (ssize_t)record.length) {
        return FAILURE_NONE;
    }
    int error = count < 0 ? errno : ENOSPC;
    file->is_mid_line = file->is_mid_line || count > 0;
    return failure_set_system(failure, error, "write");
}
