/* SPDX-License-Identifier: BSD-3-Clause */
/* The report about a failed worker group, as text from values. Shape, labels and columns are those
 * of ChildFailedError.format_msg in torch/distributed/elastic/multiprocessing/errors/__init__.py,
 * after the line that log scrapers look for; but the root cause comes first, and what the kernel
 * knows is said in words. Who is the root cause is others' business, and whether a failure is a
 * consequence of it. */
#ifndef MUSTER_CORE_FAILURE_REPORT_H
#define MUSTER_CORE_FAILURE_REPORT_H

#include <stddef.h>

#include "base/text.h"
#include "core/failure_account.h"

/* Local calendar time, broken down by the caller. */
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
    struct failure_report_time time;       /* the account's */
    const struct failure_account *account; /* borrowed */
    const char *judgement; /* its part in a failure that began on another node, or NULL */
};

/* Appends the report, from the line `torch.distributed.…ChildFailedError: ` to the closing rule and
 * a newline. `entries` are in observed order, which numbers them; `root` is an index into them.
 * `name` is what worker_command_display_name says. */
void failure_report_format(struct text *out, const char *name,
    const struct failure_report_entry *entries, size_t count, size_t root);

#endif
