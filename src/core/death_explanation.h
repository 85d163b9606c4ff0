/* SPDX-License-Identifier: BSD-3-Clause */
/* Words for the end of a process, from facts that the host gathered: what a signal usually means,
 * whether the kernel's OOM killer was at work, where a core dump lies. */
#ifndef MUSTER_CORE_DEATH_EXPLANATION_H
#define MUSTER_CORE_DEATH_EXPLANATION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/text.h"
#include "core/process_exit.h"

struct death_facts {
    int64_t pid;
    struct process_exit exit;
    bool has_kernel_record;     /* the kernel's log names this pid as the OOM killer's victim … */
    uint64_t resident_kib;      /* … with this much anonymous memory; 0: not told */
    bool is_memory_cgroup_kill; /* … because its cgroup's limit was reached, not the machine's */
    uint64_t oom_kills;         /* OOM kills counted meanwhile … */
    bool counts_machine;        /* … on the whole machine, not in the worker's cgroup alone */
    const char *core_pattern;   /* /proc/sys/kernel/core_pattern without newline, or NULL */
    bool core_uses_pid;         /* /proc/sys/kernel/core_uses_pid */
};

/* Appends the explanation: sentences joined by "; ", without a full stop at the end. Nothing for an
 * ordinary exit, unless the OOM killer is known to have been at work. */
void death_explain(const struct death_facts *facts, struct text *out);

#endif
