/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads a small file whole, without trusting it: never blocks on a FIFO, never becomes a
 * controlling terminal, never reads past a ceiling. For regular files and the kernel's text
 * files. */
#ifndef MUSTER_HOST_WHOLE_FILE_H
#define MUSTER_HOST_WHOLE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"
#include "base/failure.h"

/* Appends the file's bytes to `out_bytes`. `follows_symlink` is about the last part of the path
 * only. FAILURE_MISSING when nothing is there, FAILURE_INVALID when it is not a regular file (or a
 * symbolic link not to be followed), FAILURE_LIMIT when it is longer than `ceiling` bytes (the
 * message tells the size), FAILURE_SYSTEM otherwise. */
__attribute__((warn_unused_result)) enum failure_code whole_file_read(const char *path,
    bool follows_symlink, size_t ceiling, struct bytes *out_bytes, struct failure *failure);

/* The same for a file that holds one integer (surrounding blanks allowed); FAILURE_MALFORMED when
 * it holds anything else or one that does not fit. */
__attribute__((warn_unused_result)) enum failure_code whole_file_read_integer(
    const char *path, int *out_value, struct failure *failure);

#endif
