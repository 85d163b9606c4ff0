/* SPDX-License-Identifier: BSD-3-Clause */
/* A report about one process that is about to be killed, written as it is gathered: what has been
 * found when time runs out is in the file already. Each report is one thread's. */
#ifndef MUSTER_HOST_HANG_REPORT_H
#define MUSTER_HOST_HANG_REPORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"
#include "base/duration.h"
#include "base/text.h"

struct hang_report {
    struct text text;                /* not yet in the file */
    int fd;                          /* -1: no file */
    bool is_held;                    /* it is to be opened later: text is kept */
    const atomic_bool *is_abandoned; /* nobody waits for this any more */
    struct instant end;              /* when nobody will */
};

/* Appends to the file at `path`, which is made if need be; NULL is none. A file that cannot be had
 * is none as well: then false. */
bool hang_report_open(struct hang_report *report, const char *path);

/* Puts the text into the file. */
void hang_report_flush(struct hang_report *report);

/* Flushes and closes. */
void hang_report_close(struct hang_report *report);

/* Whether there is no use in going on. */
bool hang_report_is_over(const struct hang_report *report);

/* How long there is still use in going on. */
struct duration hang_report_time_left(const struct hang_report *report);

/* Now, on the clock of `end`. */
struct instant hang_report_now(void);

/* Appends a text file of the kernel, at most `ceiling` bytes of it; false when it cannot be read
 * (errno says why) or is empty (errno is 0). */
bool hang_report_read(const char *path, size_t ceiling, struct bytes *out_bytes);

/* Appends "  <what> cannot be read: <reason>", with what to do about a lack of permission. */
void hang_report_append_error(struct hang_report *report, const char *what, int error);

/* Appends bytes from outside: control characters but the ends of lines become '?'. */
void hang_report_append_safely(struct text *text, const char *bytes, size_t length);

#endif
