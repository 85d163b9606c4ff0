/* SPDX-License-Identifier: BSD-3-Clause */
/* With this module the host of the store finds the agents that have stalled. The connection of a
 * stalled agent is open, but the agent has sent nothing for too long: it is stopped, or gets no CPU
 * time. Only time in which the host itself was looking counts. So a host that was stopped for a
 * minute does not take the agents for stalled. */
#ifndef MUSTER_CORE_RENDEZVOUS_PRESENCE_WATCH_H
#define MUSTER_CORE_RENDEZVOUS_PRESENCE_WATCH_H

#include <stdbool.h>

#include "base/duration.h"
#include "base/table.h"
#include "base/text.h"

/* A zeroed struct is valid and empty. */
struct presence_watch {
    struct table *agents; /* by name */
};

void presence_watch_clear(struct presence_watch *watch);

void presence_watch_hear(struct presence_watch *watch, const char *name, struct instant now);
bool presence_watch_knows(const struct presence_watch *watch, const char *name);
void presence_watch_forget(struct presence_watch *watch, const char *name);
/* Appends the names of all agents that are known. */
void presence_watch_list(const struct presence_watch *watch, struct text_list *out_names);

/* Appends the names of the agents that have been silent for more than `limit`. One look adds at
 * most `patience` to the silence of an agent. It should be about twice the time between two looks.
 */
void presence_watch_look(struct presence_watch *watch, struct instant now, struct duration patience,
    struct duration limit, struct text_list *out_stalled);

#endif
