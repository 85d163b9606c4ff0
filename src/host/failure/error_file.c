/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/failure/error_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "host/loop/clock.h"
#include "host/loop/directory_tree.h"
#include "host/loop/whole_file.h"

enum failure_code error_file_read(
    const char *path, size_t ceiling, struct bytes *out_bytes, struct failure *failure) {
    return whole_file_read(path, false, ceiling, out_bytes, failure);
}

/* O_NONBLOCK: a FIFO nobody reads is a failure, not a wait. */
static int write_in_place(const char *path, struct slice content) {
    struct failure reason;
    int fd = shared_place_open(
        path, O_WRONLY | O_TRUNC | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | O_NOFOLLOW, &reason);
    return fd < 0 ? shared_place_errno(&reason) : shared_place_write_and_close(fd, content);
}

/* Whether the place, and not the disk, is what forbids a new file. */
static bool is_about_the_place(int error) {
    return error == EACCES || error == EPERM || error == EROFS || error == EBUSY ||
           error == EXDEV || error == ENAMETOOLONG;
}

enum failure_code error_file_write(
    const char *path, struct slice content, struct failure *failure) {
    struct failure reason;
    if (shared_place_check(path, &reason) != FAILURE_NONE) {
        return failure_set(
            failure, reason.code, "cannot write the error file %s: %s", path, reason.message);
    }
    char *target = realpath(path, NULL); /* a symbolic link stays; its target is replaced */
    const char *place = target != NULL ? target : path;
    int error = EPERM;
    if (shared_place_can_be_replaced(place)) {
        error = shared_place_replace(place, content);
    }
    if (is_about_the_place(error)) {
        error = write_in_place(place, content);
    }
    free(target);
    if (error != 0) {
        return failure_set_system(failure, error, "cannot write the error file %s", path);
    }
    return FAILURE_NONE;
}
