/* SPDX-License-Identifier: BSD-3-Clause */
/* How much memory this process may use: the least of what the machine has, what the process' cgroup
 * and the cgroups around it allow (version 1 and 2), and RLIMIT_AS; and how much of that is not in
 * use. And whether there may be more processes. */
#ifndef MUSTER_HOST_MACHINE_MEMORY_LIMIT_H
#define MUSTER_HOST_MACHINE_MEMORY_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

/* In bytes. `root` is "" except in tests: the directory that has proc/self/cgroup and
 * sys/fs/cgroup.
 */
uint64_t memory_limit_read(const char *root);

/* The least of what the machine has available (MemAvailable) and what is left below the limit of
 * each of these cgroups. */
uint64_t memory_limit_room(const char *root);

/* Whether one of these cgroups has more processes and threads than may be added to it. */
bool task_limit_is_near(const char *root);

#endif
