/* SPDX-License-Identifier: BSD-3-Clause */
/* What people see of the end of a worker's output file: its last lines, fit for a terminal. */
#ifndef MUSTER_CORE_FAILURE_LAST_LINES_H
#define MUSTER_CORE_FAILURE_LAST_LINES_H

#include <stdbool.h>

#include "base/bytes.h"
#include "base/text.h"

#define LAST_LINES_MAXIMUM 20
/* How much of the end of a file is looked at, in bytes. */
#define LAST_LINES_WINDOW 4096u

/* Appends at most LAST_LINES_MAXIMUM lines, each with its newline, and no more bytes than
 * LAST_LINES_WINDOW and a newline. `end` is the end of the file; of a longer one only the last
 * LAST_LINES_WINDOW bytes count. `is_cut` says that the file has more before it; then its first
 * line, which may have lost its beginning, is left out where others follow. Of a line that was
 * overwritten with carriage returns (a progress bar) only what stands there in the end is kept.
 * Other control characters and bytes that are no UTF-8 become '?', see utf8_make_printable. Bytes
 * of zero are such control characters, too. */
void last_lines_append(struct slice end, bool is_cut, struct text *out);

#endif
