/* SPDX-License-Identifier: BSD-3-Clause */
/* Remembers processes that were found to be admitted a moment ago. So a process that asks for many
 * timers in a burst is not looked up for each of them. A pid is not reused by another process
 * within so short a time; besides, no process is ended only because it is in this table. */
#ifndef MUSTER_CORE_WATCHDOG_KNOWN_PROCESSES_H
#define MUSTER_CORE_WATCHDOG_KNOWN_PROCESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/duration.h"

/* How long the result of a look-up is trusted. */
#define KNOWN_PROCESSES_TRUST_MILLISECONDS 10
/* The size of the table. When two processes have the same place, the second one replaces the first,
 * which is then looked up again. */
#define KNOWN_PROCESSES_PLACES 256

struct known_process {
    int64_t pid; /* 0: the place is empty */
    uint64_t start_time;
    struct instant trusted_until;
};

/* A zeroed struct is valid: it knows no process. */
struct known_processes {
    struct known_process places[KNOWN_PROCESSES_PLACES]; /* by pid */
};

/* Returns false when the process was not added, or was added too long ago. Pids are positive. */
bool known_processes_find(
    const struct known_processes *known, int64_t pid, struct instant now, uint64_t *out_start_time);
void known_processes_add(
    struct known_processes *known, int64_t pid, uint64_t start_time, struct instant now);
void known_processes_forget(struct known_processes *known, int64_t pid);

#endif
