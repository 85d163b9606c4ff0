/* SPDX-License-Identifier: BSD-3-Clause */
/* What is kept for the place of a worker while it is not known yet whether its standby worker goes
 * through its gate: the environment and the streams with which a process is started otherwise. */
#ifndef MUSTER_AGENT_WORKERS_AWAITED_PLACE_H
#define MUSTER_AGENT_WORKERS_AWAITED_PLACE_H

#include <stdbool.h>

#include "agent/workers/attempt_files.h"
#include "base/text.h"

/* A zeroed struct is a place that is not awaited. */
struct awaited_place {
    bool is_awaited;
    struct text_list environment;
    int streams[ATTEMPT_STREAM_COUNT]; /* -1: the agent's own */
};

/* The place is awaited from now on. Copies the environment and the descriptors. */
void awaited_place_keep(struct awaited_place *place, const struct text_list *environment,
    const int streams[ATTEMPT_STREAM_COUNT]);

/* It is no longer awaited. */
void awaited_place_clear(struct awaited_place *place);

#endif
