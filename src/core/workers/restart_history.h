/* SPDX-License-Identifier: BSD-3-Clause */
/* When a job was restarted, as one node knows it, for a limit on restarts within a window of time
 * (--restart-window). Nodes have clocks of their own, so that they tell each other how old restarts
 * are: an age that is told is at most the true one, because time goes on while it is told. The
 * agent machine asks it whether a restart is left, and the rendezvous machine keeps the ages in the
 * record of the job. PyTorch has nothing like it. */
#ifndef MUSTER_CORE_WORKERS_RESTART_HISTORY_H
#define MUSTER_CORE_WORKERS_RESTART_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/duration.h"

/* Within a window so many restarts can be counted. */
#define RESTART_HISTORY_MAXIMUM 100
#define RESTART_AGE_MAXIMUM 99999999

/* In whole seconds, those of the last restart first. Of a restart that is not listed nobody counts
 * the age any more. */
struct restart_ages {
    size_t count;
    int32_t seconds[RESTART_HISTORY_MAXIMUM];
};

/* A zeroed struct is valid: there was no restart. */
struct restart_history {
    int64_t restarts; /* that the job has used in all */
    bool has_begun;   /* it is known how many */
    size_t count;
    struct instant at[RESTART_HISTORY_MAXIMUM]; /* the last ones, the last one first */
};

/* The job has used so many restarts: those that are new have just been. Who begins to know them
 * knows of their ages, if at all, what is told; `ages` may be NULL. Of fewer than before, the last
 * ones were given back. */
void restart_history_note(struct restart_history *history, int64_t restarts,
    const struct restart_ages *ages, struct instant now);
/* The ages of those within the window. */
void restart_history_tell(const struct restart_history *history, struct duration window,
    struct instant now, struct restart_ages *out_ages);
/* How many are within the window. */
int restart_history_count(
    const struct restart_history *history, struct duration window, struct instant now);

#endif
