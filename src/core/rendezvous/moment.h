/* SPDX-License-Identifier: BSD-3-Clause */
/* A moment is a point in time that may be unset: a deadline, or the time of the next action. */
#ifndef MUSTER_CORE_RENDEZVOUS_MOMENT_H
#define MUSTER_CORE_RENDEZVOUS_MOMENT_H

#include <stdbool.h>

#include "base/duration.h"

/* A zeroed struct is valid and unset. */
struct moment {
    bool is_set;
    struct instant at;
};

void moment_set(struct moment *moment, struct instant at);
void moment_set_after(struct moment *moment, struct instant now, struct duration duration);
void moment_clear(struct moment *moment);

bool moment_has_come(const struct moment *moment, struct instant now);

/* Sets `next`, the time of the next wake-up, to `moment` when `moment` is earlier. Ignores a moment
 * that has come already: the current step has acted on it if it could, so no timer is needed. */
void moment_wake(const struct moment *moment, struct instant now, struct moment *next);

#endif
