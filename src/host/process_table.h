/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks at other processes through /proc: who they are, whose children, all of them. It signals
 * nobody and remembers nothing. A pid read here may be another process by the time it is used;
 * process_table_signal is the way not to hit that one. */
#ifndef MUSTER_HOST_PROCESS_TABLE_H
#define MUSTER_HOST_PROCESS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "wire/kernel_text.h"

/* False when there is no such process (or no /proc). Async-signal-safe. */
bool process_table_read(pid_t pid, struct kernel_process_stat *out_stat);

/* A growable list of pids; zeroed is empty. */
struct process_ids {
    pid_t *items;
    size_t count;
    size_t capacity;
};
void process_ids_add(struct process_ids *ids, pid_t pid);
bool process_ids_have(const struct process_ids *ids, pid_t pid);
void process_ids_clear(struct process_ids *ids);

/* Appends the children of `pid`, of all its threads. */
void process_table_children(pid_t pid, struct process_ids *out_children);

/* The same for kernels that do not list children (CONFIG_PROC_CHILDREN), by looking through all
 * processes. */
void process_table_children_by_search(pid_t pid, struct process_ids *out_children);

/* Calls `visit` for every process there is until it returns false. False without /proc. */
bool process_table_each(bool (*visit)(void *context, pid_t pid), void *context);

/* Sends `signal` to the process that `known` describes, and to no other that got its pid. False
 * when it is gone, or must not be signalled. */
bool process_table_signal(const struct kernel_process_stat *known, int signal);

#endif
