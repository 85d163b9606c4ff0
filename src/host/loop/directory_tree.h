/* SPDX-License-Identifier: BSD-3-Clause */
/* Removes a directory of this user's with everything that other processes have left in it. It
 * knows the directory by its inode, so that what has come to the same path since is left alone.
 * Links are not followed, other file systems are not entered, and there is an end however fast
 * somebody fills the directory meanwhile. It waits for the disk. */
#ifndef MUSTER_HOST_LOOP_DIRECTORY_TREE_H
#define MUSTER_HOST_LOOP_DIRECTORY_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

/* Removes a directory in which nobody has left anything but directories. It waits for the disk. */

/* Removes `path` and the directories below it, if there is nothing else. Links are not followed.
 * Returns whether it is gone. */
bool empty_directory_remove(const char *path);

/* Where temporary files go, in the order in which Python's tempfile looks: $TMPDIR, $TEMP, $TMP,
 * /tmp, /var/tmp, /usr/tmp and the working directory. Makes nothing. */

/* The place with this index; NULL: there are no more. Variables that are not set are left out.
 * `environment` is an environment, or NULL for this process's own. Does not look at the disk. */
const char *temporary_directory_candidate(const struct text_list *environment, size_t index);

/* The first of these places in which this process may make a file; /tmp where there is none. It is
 * for paths that others are told, so the working directory does not count. Looks at the disk. */
const char *temporary_directory_usable(const struct text_list *environment);

/* The directories in each other that one call removes. */
#define DIRECTORY_TREE_DEPTH_MAXIMUM 256

struct directory_tree {
    uint64_t device;
    uint64_t inode; /* 0: not known, nothing is removed */
};

/* Notes which directory is at `path` now. False, and an unknown tree, when it is none of this
 * user's. */
bool directory_tree_note(const char *path, struct directory_tree *out_tree);

/* Removes the tree, if it is still at `path`. Returns whether it is gone; errno says why
 * not. `out_bytes` is the memory
 * or disk space that its files took; it may be NULL. */
bool directory_tree_remove(
    const char *path, const struct directory_tree *tree, uint64_t *out_bytes);

/* The name of a file system that is never shared between machines, by the f_type of statfs(2); NULL
 * for others. */
const char *file_system_local_name(long type);

#endif
