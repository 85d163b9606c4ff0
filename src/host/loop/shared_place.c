/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/loop/shared_place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"

#define SHARED_MODE 0666
#define PRIVATE_MODE 0600
#define PRIVATE_DIRECTORY_MODE 0700
/* How often the name may appear and disappear while it is opened. */
#define TRIES 10

struct place {
    bool is_shared; /* the directory is */
    bool is_there;
    bool is_foreign;
};

/* What cannot be looked at is not shared: to open it will fail with the reason. */
static struct place look(const char *path) {
    struct place place = {0};
    struct stat directory;
    struct stat status;
    char *parent = memory_duplicate_string(path);
    char *slash = strrchr(parent, '/');
    if (slash != NULL) {
        slash[slash == parent ? 1 : 0] = '\0';
    }
    if (stat(slash == NULL ? "." : parent, &directory) == 0) {
        place.is_shared = (directory.st_mode & S_ISVTX) != 0 && (directory.st_mode & S_IWOTH) != 0;
        place.is_there = lstat(path, &status) == 0;
        place.is_foreign = place.is_shared && place.is_there && !S_ISDIR(status.st_mode) &&
                           status.st_uid != geteuid() && status.st_uid != directory.st_uid;
    }
    free(parent);
    return place;
}

static enum failure_code refuse(struct failure *failure) {
    return failure_set(failure, FAILURE_INVALID,
        "it belongs to another user, in a directory where everybody may make files; give a path "
        "of your own");
}

enum failure_code shared_place_check(const char *path, struct failure *failure) {
    return look(path).is_foreign ? refuse(failure) : FAILURE_NONE;
}

enum failure_code shared_place_fail_to_make(const char *path, int error, struct failure *failure) {
    if (error == ENOTDIR || error == ENAMETOOLONG) {
        enum failure_code code = error == ENOTDIR ? FAILURE_INVALID : FAILURE_LIMIT;
        return failure_set(failure, code, "cannot make the directory %s: %s", path,
            error == ENOTDIR ? "something on the way is not a directory" : "the name is too long");
    }
    return failure_set_system(failure, error, "cannot make the directory %s", path);
}

static enum failure_code make_directory_if_missing(
    const char *path, unsigned mode, struct failure *failure) {
    struct stat status;
    struct failure reason;
    if (shared_place_check(path, &reason) != FAILURE_NONE) {
        return failure_set(
            failure, reason.code, "cannot make the directory %s: %s", path, reason.message);
    }
    if (stat(path, &status) == 0) {
        if (!S_ISDIR(status.st_mode)) {
            return failure_set(failure, FAILURE_INVALID, "%s is not a directory", path);
        }
        return FAILURE_NONE;
    }
    if (errno != ENOENT) {
        return shared_place_fail_to_make(path, errno, failure);
    }
    if (mkdir(path, (mode_t)mode) != 0 && errno != EEXIST) { /* another node on a shared disk */
        return shared_place_fail_to_make(path, errno, failure);
    }
    return FAILURE_NONE;
}

enum failure_code shared_place_make_directories(
    const char *path, unsigned mode, struct failure *failure) {
    struct text prefix = {0};
    enum failure_code code = FAILURE_NONE;
    for (const char *end = path + 1; code == FAILURE_NONE; end++) {
        if (*end == '/' || *end == '\0') {
            prefix.length = 0;
            text_append_bytes(&prefix, path, (size_t)(end - path));
            code = make_directory_if_missing(text_string(&prefix), mode, failure);
        }
        if (*end == '\0') {
            break;
        }
    }
    text_clear(&prefix);
    return code;
}

enum failure_code shared_place_make_private(const char *path, struct failure *failure) {
    struct stat status;
    if (mkdir(path, PRIVATE_DIRECTORY_MODE) == 0) {
        return FAILURE_NONE;
    }
    if (errno != EEXIST || lstat(path, &status) != 0) {
        return shared_place_fail_to_make(path, errno, failure);
    }
    if (!S_ISDIR(status.st_mode)) {
        return failure_set(failure, FAILURE_INVALID, "%s is not a directory", path);
    }
    if (status.st_uid != geteuid() || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        return failure_set(failure, FAILURE_INVALID,
            "%s belongs to another user, or others may write there", path);
    }
    return FAILURE_NONE;
}

int shared_place_open(const char *path, int flags, struct failure *failure) {
    for (int i = 0; i < TRIES; i++) {
        struct place place = look(path);
        if (place.is_foreign) {
            (void)refuse(failure);
            return -1;
        }
        /* What is there and is this user's own cannot be replaced by anybody else. What is not
         * there yet must be made here and now. */
        int making = !place.is_shared ? O_CREAT
                     : place.is_there ? 0
                                      : O_CREAT | O_EXCL | O_NOFOLLOW;
        int fd = open(path, flags | making, place.is_shared ? PRIVATE_MODE : SHARED_MODE);
        bool has_changed = place.is_shared && errno == (place.is_there ? ENOENT : EEXIST);
        if (fd >= 0 || !has_changed) {
            if (fd < 0) {
                int error = errno;
                (void)failure_set(failure, FAILURE_SYSTEM, "%s", failure_system_words(error));
                failure->system_error = error;
            }
            return fd;
        }
    }
    (void)failure_set(failure, FAILURE_SYSTEM, "it appears and disappears all the time");
    return -1;
}
