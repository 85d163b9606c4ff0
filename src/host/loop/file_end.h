/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the end of a file that may be long and that others write to, without trusting it: never
 * blocks on a FIFO, never makes a terminal the controlling terminal, reads regular files only. A
 * dead disk can hold it up, so it is for a thread that nobody waits for without a bound. */
#ifndef MUSTER_HOST_LOOP_FILE_END_H
#define MUSTER_HOST_LOOP_FILE_END_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"
#include "base/failure.h"

/* Appends at most the last `maximum` bytes of the file. `*out_is_cut` says whether the file has
 * more before them. FAILURE_MISSING when there is no file, FAILURE_INVALID when it is not a regular
 * file, FAILURE_LIMIT when `out_bytes` has no room, FAILURE_SYSTEM otherwise. */
__attribute__((warn_unused_result)) enum failure_code file_end_read(const char *path,
    size_t maximum, struct bytes *out_bytes, bool *out_is_cut, struct failure *failure);

#endif
