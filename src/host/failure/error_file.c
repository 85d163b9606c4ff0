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
#include "host/loop/files.h"

#define RANDOM_LENGTH 8

enum failure_code error_file_read(
    const char *path, size_t ceiling, struct bytes *out_bytes, struct failure *failure) {
    return whole_file_read(path, false, ceiling, out_bytes, failure);
}

static int write_all(int fd, struct slice content) {
    while (content.length > 0) {
        ssize_t count = write(fd, content.data, content.length);
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            return errno;
        }
        content.data += count;
        content.length -= (size_t)count;
    }
    return 0;
}

/* Returns an errno. */
static int write_and_close(int fd, struct slice content) {
    int error = write_all(fd, content);
    if (close(fd) != 0 && error == 0) {
        error = errno;
    }
    return error;
}

/* A refusal that no system call gave has no errno of its own. */
static int errno_of(const struct failure *reason) {
    return reason->system_error != 0 ? reason->system_error : EPERM;
}

static int replace(const char *path, struct slice content) {
    char random[RANDOM_LENGTH + 1];
    random_seed_name(random, RANDOM_LENGTH);
    char *fresh = text_format("%s.%s", path, random);
    struct failure reason;
    int fd = shared_place_open(fresh, O_WRONLY | O_EXCL | O_CLOEXEC, &reason);
    bool is_made = fd >= 0;
    int error = is_made ? write_and_close(fd, content) : errno_of(&reason);
    if (error == 0 && rename(fresh, path) != 0) {
        error = errno;
    }
    if (error != 0 && is_made) {
        (void)unlink(fresh); /* the first failure is the one to tell */
    }
    free(fresh);
    return error;
}

/* O_NONBLOCK: a FIFO nobody reads is a failure, not a wait. */
static int write_in_place(const char *path, struct slice content) {
    struct failure reason;
    int fd = shared_place_open(
        path, O_WRONLY | O_TRUNC | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | O_NOFOLLOW, &reason);
    return fd < 0 ? errno_of(&reason) : write_and_close(fd, content);
}

/* A new file can take the place of nothing and of a regular file only: renaming over /dev/null
 * would succeed for root. */
static bool can_be_replaced(const char *path) {
    struct stat status;
    return stat(path, &status) != 0 ? errno == ENOENT : S_ISREG(status.st_mode);
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
    if (can_be_replaced(place)) {
        error = replace(place, content);
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
