/* SPDX-License-Identifier: BSD-3-Clause */
/* What may go wrong with standby workers, and how often, until there are none any more: they die,
 * or have imported modules that nobody may import before the program runs. */
#ifndef MUSTER_CORE_STANDBY_STANDBY_FAILURES_H
#define MUSTER_CORE_STANDBY_STANDBY_FAILURES_H

#include <stdbool.h>

#include "base/duration.h"

/* After the first death; it doubles with each. */
#define STANDBY_BACKOFF_SECONDS 60
#define STANDBY_DEATHS_MAXIMUM 3
/* How often the list of modules may become shorter. */
#define STANDBY_CUTS_MAXIMUM 8

struct standby_failures {
    int deaths;
    int cuts; /* of the list */
};

/* One has died. True: another may be started after `out_pause`. */
bool standby_failures_take_death(struct standby_failures *failures, struct duration *out_pause);

/* One that was started when the list had been cut `told` times cannot be used. `is_new`: the list
 * has become shorter by what it has named. True: another may be started, since it is told of a
 * list that this one did not know. */
bool standby_failures_take_unsuited(struct standby_failures *failures, bool is_new, int told);

#endif
