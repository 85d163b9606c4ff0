/* SPDX-License-Identifier: BSD-3-Clause */
/* How long an agent has not spoken to its guardian, and whether that is long enough to end its
 * workers. Only time in which the guardian itself was looking counts: so a machine that was
 * suspended, or a guardian that got no CPU time, does not make an agent look silent. */
#ifndef MUSTER_HOST_PROCESS_GUARDIAN_FENCE_H
#define MUSTER_HOST_PROCESS_GUARDIAN_FENCE_H

#include <stdbool.h>

#include "base/duration.h"

/* A zeroed struct is valid: no silence is too long. */
struct guardian_fence {
    struct duration patience; /* the agent may be silent for so long; zero: for ever */
    struct duration silence;
    struct instant heard; /* when the agent spoke last */
    struct instant counted_until;
    bool is_closed; /* no worker may run, until the agent has heard of it */
};

/* The agent has spoken, and says how long it may be silent from now on. */
void guardian_fence_hear(
    struct guardian_fence *fence, struct duration patience, struct instant now);

/* Returns whether the fence closes now: the agent has been silent for too long. */
bool guardian_fence_look(struct guardian_fence *fence, struct instant now);

/* The agent knows that its workers were ended. */
void guardian_fence_open(struct guardian_fence *fence, struct instant now);

/* After how many milliseconds to look again; -1: there is no need to. */
int guardian_fence_pause(const struct guardian_fence *fence);

#endif
