/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the files events.jsonl of a job's nodes. */
#ifndef MUSTER_MAIN_TELLING_REPORT_FILES_H
#define MUSTER_MAIN_TELLING_REPORT_FILES_H

#include "base/failure.h"
#include "base/text.h"
#include "main/telling/job_inquiry.h"

/* Of all files. */
#define REPORT_FILES_ENTRIES_MAXIMUM ((size_t)1 << 20)

/* The entries, each once, in the order of their times, and the names of the nodes that have written
 * them. What is no entry is skipped and counted on stderr. FAILURE_INVALID: a file cannot be read
 * or is none of events; FAILURE_LIMIT: there are too many. */
__attribute__((warn_unused_result)) enum failure_code report_files_read(struct inquiry *inquiry,
    const struct text_list *paths, struct text_list *nodes, struct failure *failure);

#endif
