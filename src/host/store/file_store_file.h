/* SPDX-License-Identifier: BSD-3-Clause */
/* The file of a FileStore, used as PyTorch's FileStore uses it (c10d/FileStore.cpp). Each visit
 * opens and locks the file (flock: exclusive to write, shared to read), reads from where the last
 * visit ended, appends, unlocks and closes. Nothing here waits: a visit that is not possible now
 * fails. host/file_store decides when to visit again, and why. */
#ifndef MUSTER_HOST_STORE_FILE_STORE_FILE_H
#define MUSTER_HOST_STORE_FILE_STORE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "core/store/file_store_contents.h"

struct file_store_file {
    char *path;
    struct file_store_contents *contents; /* what has been read so far */
    struct file_store_limits limits;
    int fd;            /* descriptor of the visit under way, else -1 */
    uint64_t position; /* end of the last record read */
    bool has_more;     /* the last visit stopped early because there was much to read */
    bool is_known;     /* the file has been visited; `device` and `inode` identify it */
    dev_t device;
    ino_t inode;
    struct bytes unread; /* bytes read that are no whole record yet */
    struct bytes output; /* records to be written to the file */
};

enum file_store_visit {
    FILE_STORE_READ,
    FILE_STORE_WRITE,
    FILE_STORE_CREATE, /* to write; a missing file is created with PyTorch's mode */
};

/* Copies the path. */
void file_store_file_init(struct file_store_file *file, const char *path);
/* Also ends a visit. */
void file_store_file_clear(struct file_store_file *file);

/* Begins a visit. When it succeeds, everything in the file has been read, and the lock is held
 * until file_store_file_leave.
 *
 * FAILURE_INCOMPLETE: not now, try again. The message says why: another process holds the lock;
 * there is so much to read that the loop should run first (`has_more`); or, for a writer, the file
 * ends in the middle of a record. FAILURE_MISSING: the file is gone, or was replaced or truncated
 * since the last visit. FAILURE_INVALID: it is no regular file. FAILURE_MALFORMED: it is no
 * FileStore. FAILURE_LIMIT: it holds too much. FAILURE_SYSTEM. After one of these the file must not
 * be visited again. */
__attribute__((warn_unused_result)) enum failure_code file_store_file_enter(
    struct file_store_file *file, enum file_store_visit visit, struct failure *failure);

/* Appends records in one piece during a visit to write, and adds them to the contents. When the
 * disk is full the file stays as it was. FAILURE_INVALID for a key that cannot be written (nothing
 * has happened then), FAILURE_SYSTEM. */
__attribute__((warn_unused_result)) enum failure_code file_store_file_append(
    struct file_store_file *file, const struct file_store_record *records, size_t count,
    struct failure *failure);

void file_store_file_leave(struct file_store_file *file);

/* Whether a visit might find something new. Does not take the lock. */
bool file_store_file_has_news(const struct file_store_file *file);

#endif
