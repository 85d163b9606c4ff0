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

/* Opens a file with `flags`, and makes it if it is missing: in such a directory for this user
 * alone, elsewhere with the mode 0666, less what umask takes. Returns a descriptor, or -1 and a
 * failure: FAILURE_INVALID as above, else FAILURE_SYSTEM. No message names the path. */
int shared_place_open(const char *path, int flags, struct failure *failure);

#endif
