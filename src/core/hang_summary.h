/* SPDX-License-Identifier: BSD-3-Clause */
/* What a process that is about to be killed was doing, in one line: "in uninterruptible sleep in
 * read (nfs_wait), 12 threads, at train.py:17 in step". The whole story is in a file. */
#ifndef MUSTER_CORE_HANG_SUMMARY_H
#define MUSTER_CORE_HANG_SUMMARY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

/* A zeroed struct is a process of which nothing is known. Its first thread: … */
struct hang_summary {
    char state;     /* as in /proc/<pid>/stat; 0: not known, it may be gone */
    char *call;     /* the system call it is in; NULL: none, or not known */
    char *waits_in; /* the kernel's function it sleeps in, or NULL */
    char *place;    /* the innermost line of Python, or NULL */
    size_t thread_count;
};

void hang_summary_clear(struct hang_summary *summary);

/* `out_copy` is to be cleared by the caller, too. */
void hang_summary_copy(const struct hang_summary *summary, struct hang_summary *out_copy);

void hang_summary_append(const struct hang_summary *summary, struct text *out);

/* "sleeping" for 'S' */
const char *hang_summary_state_words(char state);

#endif
