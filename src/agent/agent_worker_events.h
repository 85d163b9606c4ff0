/* SPDX-License-Identifier: BSD-3-Clause */
/* What the shells report of this node's workers: the log says it, and the node's machine gets it as
 * events. Decides nothing. */
#ifndef MUSTER_AGENT_AGENT_WORKER_EVENTS_H
#define MUSTER_AGENT_AGENT_WORKER_EVENTS_H

#include "agent/agent_state.h"

struct agent_workers_observer agent_workers_events(struct agent *agent);

/* `context` is the agent. */
void agent_worker_stuck(void *context, int local_rank, struct duration how_long);

#endif
