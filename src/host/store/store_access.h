/* SPDX-License-Identifier: BSD-3-Clause */
/* Access to a store of either kind: a TCPStore server or a FileStore's file. Requests, answers,
 * deadlines and their order are those of host/store_client.h in both cases. Operations that a file
 * does not support (queues, barriers) are answered with FAILURE_UNSUPPORTED. The two kinds differ
 * only in how they are created. */
#ifndef MUSTER_HOST_STORE_STORE_ACCESS_H
#define MUSTER_HOST_STORE_STORE_ACCESS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/duration.h"
#include "base/failure.h"
#include "host/loop/event_loop.h"
#include "host/store/store_client.h"

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

struct store_access;

/* Both copy what the settings point to and never return NULL. Requests may be sent at once. */
struct store_access *store_access_over_tcp(
    struct event_loop *loop, const struct store_client_settings *settings);
struct store_access *store_access_over_file(
    struct event_loop *loop, const struct file_store_settings *settings);

/* Pending requests are called back with FAILURE_CANCELLED before this returns. May be called from
 * inside a callback, but only once. Accepts NULL. */
void store_access_free(struct store_access *access);

/* As store_client_send: everything is copied. `done` is called once, never from inside this
 * call. */
void store_access_send(struct store_access *access, const struct store_client_call *call);

/* As store_client_look. Does nothing for a file, and returns for ever. */
struct duration store_access_look(struct store_access *access);
/* As store_client_silence; a file is never silent. */
struct duration store_access_silence(const struct store_access *access);

/* As store_client_descriptor; -1 for a file. */
int store_access_descriptor(const struct store_access *access);

/* As store_client_write_server. Nothing for a file. */
void store_access_write_server(const struct store_access *access, struct text *out);
/* Appends the address of this end of the connection, where the other is another machine's. */
void store_access_write_own(const struct store_access *access, struct text *out);
/* As store_client_write_address. Nothing for a file. */
void store_access_write_address(const struct store_access *access, struct text *out);
/* As store_client_write_obstacle. Nothing for a file. */
void store_access_write_obstacle(const struct store_access *access, struct text *out);

#endif
