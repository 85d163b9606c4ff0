/* SPDX-License-Identifier: BSD-3-Clause */
/* One line on a terminal that is written over again and again: what stands there now, and the bytes
 * that put another line in its place, or nothing. Uses carriage returns and blanks alone, which
 * every terminal knows. Writes nothing itself. */
#ifndef MUSTER_HOST_LOG_STATUS_LINE_H
#define MUSTER_HOST_LOG_STATUS_LINE_H

#include "base/text.h"

/* A zeroed struct: nothing is shown. */
struct status_line {
    int columns; /* that are in use */
};

/* The number of columns of the terminal; 0: `fd` is none. */
int status_line_width(int fd);

/* Appends what shows `line`, cut to fewer columns than `width`, in the place of what is shown. Of
 * control characters see utf8_make_line_printable. NULL: what shows nothing, with the cursor at the
 * beginning of the line. Nothing is appended where nothing is to be done. */
void status_line_show(struct status_line *status, const char *line, int width, struct text *out);

#endif
