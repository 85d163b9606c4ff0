/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/register/directory_visit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "host/loop/random_seed.h"
#include "host/register/directory_kind.h"

#define PRIVATE_DIRECTORY 0700
#define PRIVATE_FILE 0600
#define NEW_LETTERS 16
#define CHUNK_SIZE ((size_t)64 << 10)

enum failure_code directory_visit_fail(struct directory_visit *visit, int error, const char *what) {
    return directory_kind_fail(visit->path, error, what, visit->is_final, visit->why);
}

/* Entering. */

static enum failure_code open_job(struct directory_visit *visit, int root) {
    const char *job = visit->job;
    bool is_made = mkdirat(root, job, PRIVATE_DIRECTORY) == 0;
    if (!is_made && errno != EEXIST) {
        return directory_visit_fail(visit, errno, "cannot make a directory in it");
    }
    if (is_made && fsync(root) != 0 && errno != EINVAL) {
        return directory_visit_fail(visit, errno, "cannot make a directory in it");
    }
    visit->fd = openat(root, job, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (visit->fd >= 0) {
        return FAILURE_NONE;
    }
    if (errno == ELOOP || errno == ENOTDIR) {
        *visit->is_final = true;
        return failure_set(visit->why, FAILURE_INVALID,
            "%s/%s is not a directory of Muster's: it is a symbolic link or a file; remove it, or "
            "give the job another --rdzv-id",
            visit->path, job);
    }
    return directory_visit_fail(visit, errno, "cannot open the job's directory in it");
}

enum failure_code directory_visit_enter(struct directory_visit *visit) {
    int root = open(visit->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0) {
        return directory_visit_fail(visit, errno, "cannot open it");
    }
    enum failure_code code = open_job(visit, root);
    (void)close(root); /* nothing was written */
    return code;
}

void directory_visit_leave(struct directory_visit *visit) {
    if (visit->fd >= 0) {
        (void)close(visit->fd); /* what was written has been synced */
    }
}

/* Files that are made. */

static int create_new(struct directory_visit *visit, char name[DIRECTORY_NAME_SIZE]) {
    char letters[NEW_LETTERS + 1];
    random_seed_name(letters, NEW_LETTERS);
    snprintf(name, DIRECTORY_NAME_SIZE, DIRECTORY_NEW_PREFIX "%s", letters);
    return openat(
        visit->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, PRIVATE_FILE);
}

/* Compares the owner of the directory with the owner of what this process makes there: a server may
 * know a user by another number. */
static enum failure_code recognize_owner(struct directory_visit *visit, int new_file) {
    struct stat status;
    struct stat own;
    if (fstat(new_file, &own) != 0 || fstat(visit->fd, &status) != 0) {
        return directory_visit_fail(visit, errno, "cannot look at what is in it");
    }
    visit->owner = own.st_uid;
    if (status.st_uid == own.st_uid && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0) {
        return FAILURE_NONE;
    }
    *visit->is_final = true;
    return failure_set(visit->why, FAILURE_INVALID,
        "%s/%s cannot be used: it belongs to user %ju (mode %03o) and this is user %ju; others "
        "must "
        "not be able to write there; remove it, or give the job another --rdzv-id",
        visit->path, visit->job, (uintmax_t)status.st_uid, (unsigned)(status.st_mode & 0777),
        (uintmax_t)own.st_uid);
}

static enum failure_code write_all(
    struct directory_visit *visit, int fd, struct slice text, bool is_synced) {
    size_t written = 0;
    while (written < text.length) {
        ssize_t count = write(fd, text.data + written, text.length - written);
        if (count < 0 && errno != EINTR) {
            return directory_visit_fail(visit, errno, "cannot write in it");
        }
        written += count < 0 ? 0 : (size_t)count;
    }
    return is_synced && fsync(fd) != 0 ? directory_visit_fail(visit, errno, "cannot write in it")
                                       : FAILURE_NONE;
}

/* Makes a whole file of a new name. It is removed again on failure. Making it also has a network
 * file system look at the directory afresh. */
enum failure_code directory_visit_make(struct directory_visit *visit, struct slice text,
    bool is_synced, char name[DIRECTORY_NAME_SIZE]) {
    int fd = create_new(visit, name);
    if (fd < 0) {
        return directory_visit_fail(visit, errno, "cannot make a file in it");
    }
    enum failure_code code = recognize_owner(visit, fd);
    if (code == FAILURE_NONE) {
        code = write_all(visit, fd, text, is_synced);
    }
    if (close(fd) != 0 && code == FAILURE_NONE) { /* where a quota is told of late */
        code = directory_visit_fail(visit, errno, "cannot write in it");
    }
    if (code != FAILURE_NONE) {
        (void)unlinkat(visit->fd, name, 0);
    }
    return code;
}

/* Looking. */

/* Calls `found` for each name. */
enum failure_code directory_visit_list(
    struct directory_visit *visit, void (*found)(void *context, const char *name), void *context) {
    int fd = openat(visit->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *names = fd < 0 ? NULL : fdopendir(fd);
    if (names == NULL) {
        enum failure_code code = directory_visit_fail(visit, errno, "cannot list it");
        if (fd >= 0) {
            (void)close(fd);
        }
        return code;
    }
    const struct dirent *name;
    while ((errno = 0, name = readdir(names)) != NULL) {
        found(context, name->d_name);
    }
    enum failure_code code =
        errno == 0 ? FAILURE_NONE : directory_visit_fail(visit, errno, "cannot list it");
    (void)closedir(names);
    return code;
}

enum failure_code directory_visit_refuse(
    struct directory_visit *visit, const char *name, const char *why) {
    *visit->is_final = true;
    return failure_set(visit->why, FAILURE_INVALID,
        "%s/%s/%s is no file of this job's register: it %s; remove it, or give the job another "
        "--rdzv-id",
        visit->path, visit->job, name, why);
}

static enum failure_code read_file(struct directory_visit *visit, int fd, const char *name,
    size_t ceiling, struct bytes *out_bytes) {
    struct stat status;
    if (fstat(fd, &status) != 0) {
        return directory_visit_fail(visit, errno, "cannot look at what is in it");
    }
    if (!S_ISREG(status.st_mode) || status.st_uid != visit->owner) {
        return directory_visit_refuse(visit, name,
            S_ISREG(status.st_mode) ? "belongs to another user" : "is not a regular file");
    }
    uint8_t *chunk = memory_allocate(CHUNK_SIZE);
    ssize_t count;
    enum failure_code code = FAILURE_NONE;
    bytes_init(out_bytes, ceiling);
    while (code == FAILURE_NONE && (count = read(fd, chunk, CHUNK_SIZE)) != 0) {
        if (count > 0) {
            code = bytes_append(out_bytes, chunk, (size_t)count);
            code = code == FAILURE_NONE ? code : directory_visit_refuse(visit, name, "is too long");
        } else if (errno != EINTR) {
            code = directory_visit_fail(visit, errno, "cannot read in it");
        }
    }
    free(chunk);
    return code;
}

/* FAILURE_MISSING, without a message, when there is none. */
enum failure_code directory_visit_read(
    struct directory_visit *visit, const char *name, size_t ceiling, struct bytes *out_bytes) {
    int fd = openat(visit->fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    bytes_clear(out_bytes);
    if (fd < 0) {
        return errno == ENOENT   ? FAILURE_MISSING
               : errno == ELOOP  ? directory_visit_refuse(visit, name, "is a symbolic link")
               : errno == EACCES ? directory_visit_refuse(visit, name, "belongs to another user")
                                 : directory_visit_fail(visit, errno, "cannot read in it");
    }
    enum failure_code code = read_file(visit, fd, name, ceiling, out_bytes);
    (void)close(fd); /* nothing was written */
    return code;
}
