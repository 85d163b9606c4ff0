/* SPDX-License-Identifier: BSD-3-Clause */
/* Describes in one line what a process was doing that is about to be killed: "in uninterruptible
 * sleep in read (nfs_wait), 12 threads, at train.py:17 in step". The whole evidence is in a file.
 */
#ifndef MUSTER_CORE_FAILURE_HANG_SUMMARY_H
#define MUSTER_CORE_FAILURE_HANG_SUMMARY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

/* Of one stack. */
#define HANG_SUMMARY_FRAMES_MAXIMUM 16

/* A zeroed struct is valid: nothing is known of the process. All members but the last two are about
 * its first thread. */
struct hang_summary {
    char state;     /* as in /proc/<pid>/stat; 0: unknown, it may be gone */
    char *call;     /* the system call in which it is; NULL: none, or unknown */
    char *waits_in; /* the function of the kernel in which it sleeps, or NULL */
    char *stack; /* lines of Python code, the innermost one first, each with its newline; or NULL */
    size_t thread_count;
    int file_error; /* the first errno that kept some of the evidence from its file; 0: none */
};

void hang_summary_clear(struct hang_summary *summary);

/* The caller clears `out_copy` too. */
void hang_summary_copy(const struct hang_summary *summary, struct hang_summary *out_copy);

/* What is known in one line. */
void hang_summary_append(const struct hang_summary *summary, struct text *out);

#endif
