/* SPDX-License-Identifier: BSD-3-Clause */
/* A key-value store in a file that many processes append to. It uses the format and the locking of
 * PyTorch's FileStore (c10d/FileStore.cpp), so that PyTorch and Muster can share one file. It is
 * used like a host/store_client: one request at a time, in order, each with a deadline and a
 * callback.
 *
 * - Each operation opens the file, locks it (flock), reads what was appended, appends, and unlocks.
 *   If another process holds the lock, a timer tries again; the loop never blocks on the lock. It
 * may block on a slow disk.
 * - A request that waits for a key learns of changes by inotify. Inotify does not report changes by
 *   other hosts on a network file system, so the file's length is also checked once a second. When
 *   such a check finds a change that inotify missed, the length is checked twenty times a second
 * from then on.
 * - Nothing is ever removed from the file, as in PyTorch: it grows with every write and stays when
 * the job is over. Remove the file before the same job id is used again.
 * - A record is written whole, by one system call, because PyTorch's readers hang on half a record.
 * A half record of another process that was killed is not repaired: reading stops before it, and
 *   writing fails when the time is up.
 * - Queues and BARRIER are not supported: FAILURE_UNSUPPORTED. ADD on a value that is no number
 * fails with FAILURE_PROTOCOL. After both the store stays usable.
 * - Users are counted under "refcount/" as PyTorch counts them, so that a PyTorch process that
 * knows the number of users does not remove the file too early. This module never removes the file.
 */
#ifndef MUSTER_HOST_STORE_FILE_STORE_H
#define MUSTER_HOST_STORE_FILE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/bytes.h"
#include "base/duration.h"
#include "base/failure.h"
#include "core/store/file_store_contents.h"
#include "host/loop/event_loop.h"
#include "host/store/store_client.h"

/* Reports by inotify that a file has been written and closed, removed or replaced. Changes by other
 * hosts on a network file system are not reported, and the kernel may have no watch left. So users
 * of this module must also look at the file themselves from time to time. */

struct file_change_watch;

/* NULL when the file cannot be watched. Several changes may cause one call. */
struct file_change_watch *file_change_watch_new(
    struct event_loop *loop, const char *path, void (*changed)(void *context), void *context);
/* May be called from inside its callback. Accepts NULL. */
void file_change_watch_free(struct file_change_watch *watch);

/* Drops changes that have not been reported yet. Returns whether there were any. Accepts NULL
 * (false). */
bool file_change_watch_drain(struct file_change_watch *watch);

/* The file of a FileStore, used as PyTorch's FileStore uses it (c10d/FileStore.cpp). Each visit
 * opens and locks the file (flock: exclusive to write, shared to read), reads from where the last
 * visit ended, appends, unlocks and closes. Nothing here waits: a visit that is not possible now
 * fails. host/file_store decides when to visit again, and why. */

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

struct file_store;

struct file_store_settings {
    const char *path; /* copied */
    /* Looks into a job's file only: does not create it and is not counted as a user. */
    bool is_visitor;
    struct duration connect_timeout; /* until the file has been read for the first time */
    /* Called once: with NULL when requests can be answered from now on, else with the reason why
     * not. FAILURE_TIMEOUT: the lock was never free. FAILURE_SYSTEM, FAILURE_INVALID: the path
     * cannot be used. FAILURE_MALFORMED: the file is no FileStore. May be NULL. */
    void (*connected)(void *context, const struct failure *failure);
    /* Called once when the file cannot be used any more (removed, replaced, truncated, unreadable,
     * disk full), after the pending requests have failed. May be NULL. */
    void (*lost)(void *context, const struct failure *failure);
    void *context;
};

/* Copies the settings. Creates the file when it is missing. Requests may be sent at once; they are
 * carried out after the file has been read. Never NULL. */
struct file_store *file_store_new(
    struct event_loop *loop, const struct file_store_settings *settings);

/* Pending requests are called back with FAILURE_CANCELLED before this returns. Counts this user
 * out, if the lock is free within some milliseconds. May be called from inside a callback. Accepts
 * NULL. */
void file_store_free(struct file_store *store);

/* As store_client_send. A request whose time is up fails with FAILURE_TIMEOUT and has changed
 * nothing. The store stays usable. */
void file_store_send(struct file_store *store, const struct store_client_call *call);

#endif
