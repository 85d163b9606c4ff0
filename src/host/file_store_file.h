/* SPDX-License-Identifier: BSD-3-Clause */
/* The file of a FileStore, as PyTorch's FileStore handles it (c10d/FileStore.cpp): opened and
 * locked (flock: exclusive to write, shared to read) for every visit, read from where the last
 * visit ended, appended to, unlocked and closed. Nothing here waits: a visit that cannot be made
 * now says so. When to visit again, and what for, is host/file_store's. */
#ifndef MUSTER_HOST_FILE_STORE_FILE_H
#define MUSTER_HOST_FILE_STORE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "core/file_store_contents.h"

struct file_store_file {
    char *path;
    struct file_store_contents *contents; /* what has been read */
    struct file_store_limits limits;
    int fd;            /* of the visit under way, else -1 */
    uint64_t position; /* end of the last record read */
    bool has_more;     /* the last visit ended early because there is much to read */
    bool is_known;     /* the file has been visited; device and inode say which it is */
    dev_t device;
    ino_t inode;
    struct bytes unread; /* read, but no whole record yet */
    struct bytes output; /* records on their way into the file */
};

enum file_store_visit {
    FILE_STORE_READ,
    FILE_STORE_WRITE,
    FILE_STORE_CREATE, /* to write; a missing file is made, with PyTorch's mode */
};

/* Copies the path. */
void file_store_file_init(struct file_store_file *file, const char *path);
/* Ends a visit too. */
void file_store_file_clear(struct file_store_file *file);

/* Begins a visit; when it succeeds all that is in the file has been read, and the lock is held
 * until file_store_file_leave.
 *
 * FAILURE_INCOMPLETE: not now, try again; the message says why: another holds the lock, there is so
 * much to read that the loop should come around first (`has_more`), or, for a writer, the
 * file ends in the middle of a record.
 * FAILURE_MISSING: the file is gone, or was replaced or cut short since the last visit;
 * FAILURE_INVALID: it is no regular file; FAILURE_MALFORMED: no FileStore; FAILURE_LIMIT: it holds
 * too much; FAILURE_SYSTEM. With these the file is not to be visited again. */
__attribute__((warn_unused_result)) enum failure_code file_store_file_enter(
    struct file_store_file *file, enum file_store_visit visit, struct failure *failure);

/* Appends records in one piece, during a visit to write, and takes them into the contents; if the
 * disk is full the file is as it was. FAILURE_INVALID for a key that cannot be written (then
 * nothing has happened), FAILURE_SYSTEM. */
__attribute__((warn_unused_result)) enum failure_code file_store_file_append(
    struct file_store_file *file, const struct file_store_record *records, size_t count,
    struct failure *failure);

void file_store_file_leave(struct file_store_file *file);

/* Whether a visit might find something, told without taking the lock. */
bool file_store_file_has_news(const struct file_store_file *file);

#endif
