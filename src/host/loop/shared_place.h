/* SPDX-License-Identifier: BSD-3-Clause */
/* Names in a directory in which every user may make files, but may remove only their own, such as
 * /tmp: another user can be faster, and put a symbolic link or a file of theirs where this program
 * is going to write. Such a name is not used. It is the rule of fs.protected_symlinks and
 * fs.protected_regular in Linux, which not every machine has switched on. */
#ifndef MUSTER_HOST_LOOP_SHARED_PLACE_H
#define MUSTER_HOST_LOOP_SHARED_PLACE_H

#include "base/failure.h"

/* FAILURE_INVALID when the path names another user's symbolic link or file in such a directory. A
 * directory there is fine, and so is what the owner of the shared directory has made. */
__attribute__((warn_unused_result)) enum failure_code shared_place_check(
    const char *path, struct failure *failure);

/* Makes an absolute path's directories with that mode, less what umask takes, parents first; those
 * that are there are left as they are. Failures name the path: FAILURE_INVALID when it is something
 * else than a directory, or as above, FAILURE_LIMIT when it is too long, FAILURE_SYSTEM. */
__attribute__((warn_unused_result)) enum failure_code shared_place_make_directories(
    const char *path, unsigned mode, struct failure *failure);
/* The same failure, for who makes a directory in another way. */
enum failure_code shared_place_fail_to_make(const char *path, int error, struct failure *failure);

/* Makes a directory for this user alone. One that is there already is taken if nobody else can
 * write there or have put it there; FAILURE_INVALID otherwise. */
__attribute__((warn_unused_result)) enum failure_code shared_place_make_private(
    const char *path, struct failure *failure);

/* Opens a file with `flags`, and makes it if it is missing: in such a directory for this user
 * alone, elsewhere with the mode 0666, less what umask takes. Returns a descriptor, or -1 and a
 * failure: FAILURE_INVALID as above, else FAILURE_SYSTEM. No message names the path. */
int shared_place_open(const char *path, int flags, struct failure *failure);

#endif
