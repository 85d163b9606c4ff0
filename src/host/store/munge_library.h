/* SPDX-License-Identifier: BSD-3-Clause */
/* Loads munge's client library, and asks its daemon through it. The calls block on the daemon's
 * socket, for seconds where the daemon hangs, so they are for threads of their own
 * (host/store/munge_identity). Linking the library would make every machine need it. */
#ifndef MUSTER_HOST_STORE_MUNGE_LIBRARY_H
#define MUSTER_HOST_STORE_MUNGE_LIBRARY_H

#include <sys/types.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "wire/store/store_credential.h"

/* Where the daemon listens unless it is told otherwise, with Debian's and others' packages. */
#define MUNGE_LIBRARY_SOCKET "/run/munge/munge.socket.2"

/* The part of libmunge's stable binary interface that is used here; its header is often not
 * installed. Never unloaded: a thread that hangs in it may be left behind. */
struct munge_library {
    void *handle;
    int (*encode)(char **out_credential, void *settings, const void *payload, int length);
    int (*decode)(const char *credential, void *settings, void **out_payload, int *out_length,
        uid_t *out_user, gid_t *out_group);
    void *(*settings_new)(void);
    void (*settings_free)(void *settings);
    int (*settings_set)(void *settings, int option, ...);
    const char *(*settings_error)(void *settings);
    const char *(*error)(int code);
};

/* `library` is the name of a file for tests; NULL: libmunge.so.2. FAILURE_MISSING when it is not
 * installed or lacks a function. */
__attribute__((warn_unused_result)) enum failure_code munge_library_load(
    const char *library, struct munge_library *out_library, struct failure *failure);

/* A credential with this payload; the caller clears it. `socket` is the path of the daemon's.
 * FAILURE_SYSTEM with munge's words. */
__attribute__((warn_unused_result)) enum failure_code munge_library_encode(
    const struct munge_library *library, const char *socket, struct slice payload,
    struct bytes *out_credential, struct failure *failure);

/* What munge says of a credential: ACCEPTED, then with payload (the caller clears it) and user; or
 * why not, with munge's words in `failure`. */
enum store_credential_verdict munge_library_decode(const struct munge_library *library,
    const char *socket, struct slice credential, struct bytes *out_payload, uid_t *out_user,
    struct failure *failure);

#endif
