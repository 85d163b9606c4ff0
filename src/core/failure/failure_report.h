/* SPDX-License-Identifier: BSD-3-Clause */
/* Formats the report about a failed worker group. It begins with the line for which log scrapers
 * look. Shape, labels and columns are those of ChildFailedError.format_msg in
 * torch/distributed/elastic/multiprocessing/errors/__init__.py. In contrast to it, the root cause
 * comes first, and what the kernel knows is said in words; where the worker's stderr went to a
 * file, `log_file` is its path, and its last lines follow. The caller says which failure is the
 * root cause, and which failures are consequences of it. */
#ifndef MUSTER_CORE_FAILURE_FAILURE_REPORT_H
#define MUSTER_CORE_FAILURE_FAILURE_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "core/failure/failure_account.h"

/* Local calendar time. The caller has computed it. */
struct failure_report_time {
    int year;  /* 2026 */
    int month; /* 1-12 */
    int day;
    int hour;
    int minute;
    int second;
};

/* One failed worker. */
struct failure_report_entry {
    struct failure_report_time time;       /* the time of the account */
    const struct failure_account *account; /* borrowed */
    const char *last_lines; /* of its log file, each with its newline; NULL: they are not known */
    /* failure_judgement_text, when the root cause is on another node; else NULL */
    const char *judgement;
};

/* The job whose workers have failed. */
struct failure_report_job {
    const char *name; /* from worker_command_display_name */
    bool is_python;   /* PyTorch's hint about tracebacks is for its workers */
};

/* Appends the report, from the line `torch.distributed.…ChildFailedError: ` to the closing rule and
 * a newline. `entries` are in the order in which they were observed; the report numbers them in
 * this order. `root` is an index into them. */
void failure_report_format(struct text *out, const struct failure_report_job *job,
    const struct failure_report_entry *entries, size_t count, size_t root);

#endif
