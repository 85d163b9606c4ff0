/* SPDX-License-Identifier: BSD-3-Clause */
/* The report about a failed worker group, as text from values. Shape, labels and columns are those
 * of ChildFailedError.format_msg in torch/distributed/elastic/multiprocessing/errors/__init__.py,
 * after the line that log scrapers look for; but the root cause comes first, and what the kernel
 * knows is said in words. Who is the root cause is worker_group's business. */
#ifndef MUSTER_CORE_FAILURE_REPORT_H
#define MUSTER_CORE_FAILURE_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/duration.h"
#include "base/text.h"
#include "core/process_exit.h"

/* Local calendar time, broken down by the caller. */
struct failure_report_time {
    int year;  /* 2026 */
    int month; /* 1-12 */
    int day;
    int hour;
    int minute;
    int second;
};

/* One failed worker; all strings are borrowed. */
struct failure_report_entry {
    struct failure_report_time time; /* of the error file, else of the observation */
    const char *host;
    int rank;
    int local_rank;
    int64_t pid; /* 0 when the worker was not started */
    struct process_exit exit;
    const char *start_message; /* why it could not be started, or NULL */
    struct duration stuck;     /* given up after hanging in the kernel this long, or zero */
    const char *error_file;    /* NULL: none */
    const char *message;       /* traceback or message from the error file, or NULL */
    bool is_message_object;    /* the message came from an object: its lines are indented */
    const char *evidence;      /* what the kernel knows beyond the exit status, or NULL */
    const char *note;          /* e.g. "unreadable error file: …", or NULL */
};

/* Appends the report, from the line `torch.distributed.…ChildFailedError: ` to the closing rule and
 * a newline. `entries` are in observed order, which numbers them; `root` is an index into them.
 * `name` is what worker_command_display_name says. */
void failure_report_format(struct text *out, const char *name,
    const struct failure_report_entry *entries, size_t count, size_t root);

/* "exit code 3", "signal 9 (SIGKILL)", "signal 11 (SIGSEGV), core dumped": for log lines. */
void failure_report_describe_exit(struct text *out, struct process_exit exit);

#endif
