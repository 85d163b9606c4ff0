/* SPDX-License-Identifier: BSD-3-Clause */
/* With this module the host of the store finds the agents that have stalled, and those that never
 * come. The connection of a stalled agent is open, but the agent has sent nothing for too long: it
 * is stopped, or gets no CPU time. One that never comes stands in the record, but shows no
 * presence: it ended before it did, or somebody else wrote its name. Only time in which the host
 * itself was looking counts. So a host that was stopped for a minute takes nobody for stalled, and
 * misses nobody. */
#ifndef MUSTER_CORE_RENDEZVOUS_PRESENCE_WATCH_H
#define MUSTER_CORE_RENDEZVOUS_PRESENCE_WATCH_H

#include <stdbool.h>

#include "base/duration.h"
#include "base/table.h"
#include "base/text.h"
#include "core/rendezvous/rendezvous_state.h"

/* A node of the record of which nothing is heard. */
struct presence_absence {
    struct node_identity identity;
    struct instant counted_until;
    struct duration absent_for;
    bool is_done;  /* by the record seen last */
    bool is_known; /* to be gone, or missed already: nothing more is said of it */
};

/* A zeroed struct is valid and empty. */
struct presence_watch {
    struct table *agents; /* by name */
    struct presence_absence *absent;
    size_t absent_count;
    size_t absent_capacity;
};

void presence_watch_clear(struct presence_watch *watch);

void presence_watch_hear(struct presence_watch *watch, const char *name, struct instant now);
bool presence_watch_knows(const struct presence_watch *watch, const char *name);
/* The agent is known to be gone. */
void presence_watch_forget(struct presence_watch *watch, const char *name);
/* Appends the names of all agents that are known. */
void presence_watch_list(const struct presence_watch *watch, struct text_list *out_names);

/* Appends the names of the agents that have been silent for more than `limit`. One look adds at
 * most `patience` to the silence of an agent. It should be about twice the time between two looks.
 */
void presence_watch_look(struct presence_watch *watch, struct instant now, struct duration patience,
    struct duration limit, struct text_list *out_stalled);

/* Awaits the nodes of this record of which nothing was heard, and no others. torchrun's nodes show
 * no presence, so they are not awaited. */
void presence_watch_await(
    struct presence_watch *watch, const struct rendezvous_state *record, struct instant now);
bool presence_watch_is_awaiting(const struct presence_watch *watch);
/* This node will never come, as is known otherwise. Returns whether it was awaited. */
bool presence_watch_give_up(struct presence_watch *watch, const struct node_identity *identity);

/* Calls `missed` for each node that was awaited for `limit` or longer, once. `patience` as above.
 */
void presence_watch_miss(struct presence_watch *watch, struct instant now, struct duration patience,
    struct duration limit, void (*missed)(void *context, const struct presence_absence *absence),
    void *context);

#endif
