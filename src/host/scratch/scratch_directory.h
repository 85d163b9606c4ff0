/* SPDX-License-Identifier: BSD-3-Clause */
/* A private directory in memory (tmpfs), in which the workers of one node keep what shall survive
 * their restarts, but not the job: mode 0700, under a name that nobody else has. Nothing here keeps
 * the workers from writing more than was asked for; only the tmpfs itself has an end.
 *
 * Its maker holds a lock on it. A directory of this kind without a lock belongs to nobody any more:
 * its job was killed together with everybody who would have removed it. */
#ifndef MUSTER_HOST_SCRATCH_SCRATCH_DIRECTORY_H
#define MUSTER_HOST_SCRATCH_SCRATCH_DIRECTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/failure.h"
#include "base/text.h"
#include "host/loop/files.h"

#define SCRATCH_DIRECTORY_PREFIX "muster-scratch-"

/* A zeroed struct is valid: none. */
struct scratch_directory {
    char *path; /* NULL: none */
    struct directory_tree tree;
    int lock_fd;
};

/* Makes a directory in the first of the `places` that is a tmpfs in which this user may make one.
 * FAILURE_LIMIT when less than `bytes` are free there; FAILURE_SYSTEM when no place can be used:
 * the message tells of each. The caller removes and clears the result. */
__attribute__((warn_unused_result)) enum failure_code scratch_directory_make(
    const struct text_list *places, uint64_t bytes, struct scratch_directory *out_directory,
    struct failure *failure);

/* Whether it is still at its path. */
bool scratch_directory_is_there(const struct scratch_directory *directory);
/* Makes it anew there, when it is not. Nothing has changed when this returns false. */
__attribute__((warn_unused_result)) bool scratch_directory_remake(
    struct scratch_directory *directory);

/* Removes it with everything in it. Returns whether it is gone, or there was none; then the struct
 * is empty. Otherwise errno says why it stays. `out_bytes` is how much was in it. */
bool scratch_directory_remove(struct scratch_directory *directory, uint64_t *out_bytes);

/* Lets go of it, and of its path; it may stay behind. */
void scratch_directory_clear(struct scratch_directory *directory);

/* Removes this user's directories of this kind in `place` that belong to nobody any more. Adds the
 * paths of those that are gone to `out_removed`. */
void scratch_directory_sweep(const char *place, struct text_list *out_removed);

#endif
