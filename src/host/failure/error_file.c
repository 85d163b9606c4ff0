/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/failure/error_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/text.h"
#include "host/loop/directory_tree.h"
#include "host/loop/whole_file.h"

enum failure_code error_file_read(
    const char *path, size_t ceiling, struct bytes *out_bytes, struct failure *failure) {
    return whole_file_read(path, false, ceiling, out_bytes, failure);
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
        error = shared_place_write(place, content);
    }
    free(target);
    if (error != 0) {
        return failure_set_system(failure, error, "cannot write the error file %s", path);
    }
    return FAILURE_NONE;
}
