/* SPDX-License-Identifier: BSD-3-Clause */
/* Explains the end of a process in words, from facts that the host has gathered: what a signal
 * usually means, whether the kernel's OOM killer ended the process, and where the core dump is. */
#ifndef MUSTER_CORE_FAILURE_DEATH_EXPLANATION_H
#define MUSTER_CORE_FAILURE_DEATH_EXPLANATION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "core/workers/worker_group.h"

struct death_facts {
    int64_t pid;
    struct process_exit exit;
    bool has_kernel_record; /* the kernel's log says that the OOM killer ended this pid */
    uint64_t resident_kib;  /* its anonymous memory in that log; 0: unknown */
    /* The limit of its cgroup was reached, not the machine's. */
    bool is_memory_cgroup_kill;
    uint64_t oom_kills;       /* OOM kills counted while the process ran */
    bool counts_machine;      /* they are of the whole machine, not of the worker's cgroup */
    const char *core_pattern; /* /proc/sys/kernel/core_pattern without newline, or NULL */
    bool core_uses_pid;       /* /proc/sys/kernel/core_uses_pid */
};

/* Appends the explanation: sentences joined by "; ", without a full stop at the end. Appends
 * nothing for an ordinary exit, unless there were OOM kills. */
void death_explain(const struct death_facts *facts, struct text *out);

#endif
