/* SPDX-License-Identifier: BSD-3-Clause */
/* A key-value store in a file that many processes append to: PyTorch's FileStore, its format and
 * its locking (c10d/FileStore.cpp), so that PyTorch and Muster may share one file. It is asked as a
 * host/store_client is: one thing at a time, in order, each with a deadline and a callback.
 *
 * - Each operation opens the file, locks it (flock), reads what was appended, appends, and unlocks.
 *   A lock that another holds is tried again from a timer; the loop never blocks on it. It may
 * block on a slow disk.
 * - Who waits for a key is told of changes by inotify. A network file system does not tell of other
 *   hosts' changes, so the file's length is looked at once a second too; when that finds what
 * inotify did not tell, it is done twenty times a second from then on.
 * - Nothing is ever removed from the file, as in PyTorch: it grows with every write and keeps what
 *   it holds when the job is over. A file of a job that is over belongs removed before the same job
 *   id is used again.
 * - A record is written by one system call and whole, so that PyTorch's readers (which never come
 *   back from half of one) do not see a part. A part that another process left behind when it was
 *   killed is not repaired: reading goes on before it, and writing fails when the time is up.
 * - Queues and BARRIER are not offered: FAILURE_UNSUPPORTED. ADD on what is no number fails with
 *   FAILURE_PROTOCOL. Both cost nothing but the request.
 * - Users are counted under "refcount/" as PyTorch counts them, so that a PyTorch process that was
 *   told the number of users does not remove the file under us. The file is never removed here. */
#ifndef MUSTER_HOST_FILE_STORE_H
#define MUSTER_HOST_FILE_STORE_H

#include <stdbool.h>

#include "base/duration.h"
#include "base/failure.h"
#include "host/event_loop.h"
#include "host/store_client.h"

struct file_store;

struct file_store_settings {
    const char *path; /* copied */
    /* Does not create the file and is not counted among its users: to look into a job's file. */
    bool is_visitor;
    struct duration connect_timeout; /* until the file is read for the first time */
    /* Called once: with NULL when requests can be answered from now on, else with the reason why
     * not: FAILURE_TIMEOUT for a lock that never came free, FAILURE_SYSTEM and FAILURE_INVALID for
     * a path that is none, FAILURE_MALFORMED for a file that is no FileStore. May be NULL. */
    void (*connected)(void *context, const struct failure *failure);
    /* Called once when the file can be used no longer (removed, replaced, cut short, unreadable,
     * disk full), after the pending requests have failed. May be NULL. */
    void (*lost)(void *context, const struct failure *failure);
    void *context;
};

/* Copies the settings. The file is created when it is missing. Requests may be sent at once; they
 * are carried out when the file has been read. Never NULL. */
struct file_store *file_store_new(
    struct event_loop *loop, const struct file_store_settings *settings);

/* Pending requests are called back with FAILURE_CANCELLED before this returns. Takes this user out
 * of the count, if the lock can be had within some milliseconds. Also from inside a callback. NULL
 * is fine. */
void file_store_free(struct file_store *store);

/* As store_client_send. A request whose time is up fails with FAILURE_TIMEOUT and has changed
 * nothing; the store stays usable. */
void file_store_send(struct file_store *store, const struct store_client_call *call);

#endif
