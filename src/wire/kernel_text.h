/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads what the kernel writes about processes: /proc/<pid>/stat, the OOM killer's log records, the
 * counters of memory cgroups. Text in, values out; safe in a child between fork and exec (no
 * allocation, no locale). */
#ifndef MUSTER_WIRE_KERNEL_TEXT_H
#define MUSTER_WIRE_KERNEL_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/failure.h"

/* From /proc/<pid>/stat. */
struct kernel_process_stat {
    int64_t pid;
    char state; /* 'R', 'S', 'D', 'Z' (zombie), … */
    int64_t parent;
    int64_t group;
    int64_t session;
    uint64_t start_time;      /* clock ticks since boot; with the pid it names a process for good */
    uint64_t arguments_start; /* addresses of the command line within the process … */
    uint64_t arguments_end;   /* … both 0 where they are not told */
};

/* FAILURE_MALFORMED for other text. A command name with blanks and parentheses is fine. */
__attribute__((warn_unused_result)) enum failure_code kernel_text_read_stat(
    struct slice text, struct kernel_process_stat *out_stat);

/* A victim of the OOM killer. */
struct kernel_oom_kill {
    int64_t pid;           /* in the machine's first pid namespace */
    uint64_t resident_kib; /* anon-rss; 0: not told */
    bool is_memory_cgroup; /* a cgroup's limit was reached, not the machine's */
};

/* One record as read from /dev/kmsg ("6,1234,5678,-;text\n…"). FAILURE_MISSING when it is not about
 * a victim of the OOM killer. */
__attribute__((warn_unused_result)) enum failure_code kernel_text_read_oom_kill(
    struct slice record, struct kernel_oom_kill *out_kill);

/* The value of the line "<name> <number>", as in memory.events, memory.oom_control and the like.
 * FAILURE_MISSING when there is no such line, FAILURE_MALFORMED when it holds no number. */
__attribute__((warn_unused_result)) enum failure_code kernel_text_read_counter(
    struct slice text, const char *name, uint64_t *out_value);

/* From /proc/<pid>/cgroup: the path of the process within the hierarchy of `controller` ("memory"),
 * or within the unified one (""). Points into the text. FAILURE_MISSING when it is not listed. */
__attribute__((warn_unused_result)) enum failure_code kernel_text_find_cgroup(
    struct slice text, const char *controller, struct slice *out_path);

#endif
