/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads a small file completely, without trusting it: it never blocks on a FIFO, never makes a
 * terminal the controlling terminal, and never reads past a ceiling. For regular files and the
 * kernel's text files. */
#ifndef MUSTER_HOST_LOOP_WHOLE_FILE_H
#define MUSTER_HOST_LOOP_WHOLE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"
#include "base/failure.h"

/* Reads the end of a file that may be long and that others write to, without trusting it: never
 * blocks on a FIFO, never makes a terminal the controlling terminal, reads regular files only. A
 * dead disk can hold it up, so it is for a thread that nobody waits for without a bound. */

/* Appends at most the last `maximum` bytes of the file. `*out_is_cut` says whether the file has
 * more before them. FAILURE_MISSING when there is no file, FAILURE_INVALID when it is not a regular
 * file, FAILURE_LIMIT when `out_bytes` has no room, FAILURE_SYSTEM otherwise. */
__attribute__((warn_unused_result)) enum failure_code file_end_read(const char *path,
    size_t maximum, struct bytes *out_bytes, bool *out_is_cut, struct failure *failure);

/* Appends the file's bytes to `out_bytes`. `follows_symlink` applies to the last part of the path
 * only. FAILURE_MISSING when there is no file, FAILURE_INVALID when it is not a regular file (or is
 * a symbolic link that must not be followed), FAILURE_LIMIT when it is longer than `ceiling` bytes
 * (the message tells the size), FAILURE_SYSTEM otherwise. */
__attribute__((warn_unused_result)) enum failure_code whole_file_read(const char *path,
    bool follows_symlink, size_t ceiling, struct bytes *out_bytes, struct failure *failure);

/* Reads a file that holds one integer; surrounding blanks are allowed. FAILURE_MALFORMED when it
 * holds anything else, or an integer that does not fit. */
__attribute__((warn_unused_result)) enum failure_code whole_file_read_integer(
    const char *path, int *out_value, struct failure *failure);

#endif
