/* SPDX-License-Identifier: BSD-3-Clause */
/* A report about one process that is about to be killed. It is written to its file while it is
 * gathered, so the file holds everything found when the time runs out. One report is used by one
 * thread. */
#ifndef MUSTER_HOST_FAILURE_HANG_REPORT_H
#define MUSTER_HOST_FAILURE_HANG_REPORT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/bytes.h"
#include "base/duration.h"
#include "base/text.h"

struct hang_report {
    struct text text;                /* text that is not in the file yet */
    int fd;                          /* -1: no file */
    int error;                       /* the first errno of opening or writing the file; 0: none */
    bool is_held;                    /* the file is opened later; the text is kept until then */
    const atomic_bool *is_abandoned; /* true: the result is not wanted any more */
    struct instant end;              /* when the time is up */
};

/* Opens the file at `path` for appending, and creates it if it is missing. With NULL there is no
 * file. Returns false when the file cannot be opened; there is then no file either. */
bool hang_report_open(struct hang_report *report, const char *path);

/* Writes the text to the file. */
void hang_report_flush(struct hang_report *report);

/* Flushes and closes. */
void hang_report_close(struct hang_report *report);

/* Whether the time is up or the report was abandoned. */
bool hang_report_is_over(const struct hang_report *report);

/* The time until the report is over. */
struct duration hang_report_time_left(const struct hang_report *report);

/* Reads at most `ceiling` bytes of one of the kernel's text files. False when the file cannot be
 * read (errno says why) or is empty (errno is 0). */
bool hang_report_read(const char *path, size_t ceiling, struct bytes *out_bytes);

/* Appends " <what> cannot be read: <reason>". When a permission is missing, it also says what to
 * do. */
void hang_report_append_error(struct hang_report *report, const char *what, int error);

/* Appends foreign bytes. Control characters other than newlines become '?'. */
void hang_report_append_safely(struct text *text, const char *bytes, size_t length);

/* Asks a Python for its stacks. A worker in which Muster's hook runs has told CPython's
 * faulthandler to write the stacks of all threads to the end of its record when a certain signal
 * comes. This module sends the signal, and reads what was written.
 *
 * The signal kills a process that does not expect it. So it is sent only to a child of this process
 * that has a handler for it at that moment, and only to a thread that can take it. A process that
 * has closed the record may have given its number to another file, so it is not asked either.
 *
 * The record is a file in memory (memfd): whoever writes to it never waits for the agent. */

/* What was agreed with one process. Zero: nothing. */
struct hang_evidence_dump {
    int fd;     /* of the record; the process has the same open file, and appends to it */
    int signal; /* 0: the process was not asked to listen */
};

/* Adds the stacks to the report, or says why the process could not be asked or did not answer. It
 * waits for the answer for a second at most, and for half of the time that the report has left.
 * *out_stack becomes the stack of the process' first thread, with lines such as "train.py:17 in
 * step", or NULL; the caller frees it. Returns false when no stack was told. Does nothing when
 * `dump` has no signal. */
bool hang_evidence_write_dump(
    struct hang_report *report, pid_t pid, const struct hang_evidence_dump *dump, char **out_stack);

#endif
