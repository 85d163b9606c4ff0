/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads what the kernel writes about processes: /proc/<pid>/stat, the OOM killer's log records, the
 * counters of memory cgroups. Takes text, returns values. It allocates nothing and does not depend
 * on the locale, so it is safe in a child between fork and exec. */
#ifndef MUSTER_WIRE_FAILURE_KERNEL_TEXT_H
#define MUSTER_WIRE_FAILURE_KERNEL_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "base/text.h"

/* What Muster reads of /proc/<pid>/stat. */
struct kernel_process_stat {
    int64_t pid;
    char state; /* 'R', 'S', 'D', 'Z' (zombie), … */
    int64_t parent;
    int64_t group;
    int64_t session;
    uint64_t flags;      /* of the thread: KERNEL_PROCESS_EXITING, … */
    uint64_t pending;    /* signals sent to the thread alone; bit 0 is signal 1 */
    uint64_t ignored;    /* signals up to 31, as the kernel shows no others here … */
    uint64_t caught;     /* … that the process ignores, and that it handles */
    uint64_t start_time; /* clock ticks since boot; together with the pid it identifies a process */
    uint64_t arguments_start; /* address range of the command line in the process' memory … */
    uint64_t arguments_end;   /* … both are 0 when the kernel does not show them */
    int wait_status; /* of a thread that ends, as waitpid gives it; 0: none, or not shown */
};

/* In the flags of a process: it is ending (PF_EXITING), or waits until its core is dumped to do so
 * (PF_POSTCOREDUMP). */
#define KERNEL_PROCESS_EXITING 0x4U
#define KERNEL_PROCESS_DUMPED 0x8U

/* FAILURE_MALFORMED for text of another form. A command name may contain blanks and parentheses. */
__attribute__((warn_unused_result)) enum failure_code kernel_text_read_stat(
    struct slice text, struct kernel_process_stat *out_stat);

/* A process that the OOM killer has killed. */
struct kernel_oom_kill {
    int64_t pid;           /* in the machine's first pid namespace */
    uint64_t resident_kib; /* anon-rss; 0: not known */
    bool is_memory_cgroup; /* the limit of a cgroup was reached, not that of the machine */
};

/* Reads one record of /dev/kmsg ("6,1234,5678,-;text\n…"). FAILURE_MISSING when the record does not
 * report a process killed by the OOM killer. */
__attribute__((warn_unused_result)) enum failure_code kernel_text_read_oom_kill(
    struct slice record, struct kernel_oom_kill *out_kill);

/* Reads the value of the line "<name> <number>" in files such as memory.events and
 * memory.oom_control. FAILURE_MISSING when there is no such line, FAILURE_MALFORMED when it holds
 * no number. */
__attribute__((warn_unused_result)) enum failure_code kernel_text_read_counter(
    struct slice text, const char *name, uint64_t *out_value);

/* Reads a set of signals from /proc/<pid>/status: the line "<name>:", for example "SigBlk", which
 * has 16 hexadecimal digits. Bit 0 is signal 1. FAILURE_MISSING when there is no such line,
 * FAILURE_MALFORMED when it holds something else. */
__attribute__((warn_unused_result)) enum failure_code kernel_text_read_signals(
    struct slice text, const char *name, uint64_t *out_signals);

/* Finds in /proc/<pid>/cgroup the path of the process within the hierarchy of `controller`
 * ("memory"), or within the unified hierarchy (""). The result points into the text.
 * FAILURE_MISSING when the hierarchy is not listed. */
__attribute__((warn_unused_result)) enum failure_code kernel_text_find_cgroup(
    struct slice text, const char *controller, struct slice *out_path);

/* Reads the kernel's tables of sockets: /proc/<pid>/net/{tcp,tcp6,udp,udp6,unix}, line by line. */

/* Reads one line of an address table (tcp, tcp6, udp, udp6): its inode, and a description like
 * "127.0.0.1:80 -> 10.0.0.7:4711 ESTABLISHED, 12 bytes to send, 3 to read", which is appended to
 * `out_words`. FAILURE_MALFORMED for other lines, such as the table's heading; nothing is appended
 * then. */
__attribute__((warn_unused_result)) enum failure_code socket_table_read_address(
    struct slice line, bool is_tcp, uint64_t *out_inode, struct text *out_words);

/* Reads one line of the table of Unix sockets. The description looks like "/run/socket CONNECTED"
 * or "unnamed LISTENING". */
__attribute__((warn_unused_result)) enum failure_code socket_table_read_unix(
    struct slice line, uint64_t *out_inode, struct text *out_words);

/* Reads the inode from the target of a descriptor's link in /proc. FAILURE_MISSING when the
 * descriptor is no socket. */
__attribute__((warn_unused_result)) enum failure_code socket_table_read_link(
    const char *link, uint64_t *out_inode);

/* Takes one line off the front of the text and returns it without its newline; false at the end. */
bool socket_table_next_line(struct slice *text, struct slice *out_line);

#endif
