/* SPDX-License-Identifier: BSD-3-Clause */
/* Who has fallen silent, judged by heartbeats in the record without comparing clocks: a node is
 * silent when its heartbeat has not changed for so much of this node's own time. Only time in which
 * this node was itself looking counts, so one that was stopped for a minute accuses nobody.
 * Replaces the comparison of wall clocks in _BackendRendezvousStateHolder._sanitize of
 * torch/distributed/elastic/rendezvous/dynamic_rendezvous.py. */
#ifndef MUSTER_CORE_HEARTBEAT_WATCH_H
#define MUSTER_CORE_HEARTBEAT_WATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/duration.h"
#include "core/node_identity.h"
#include "core/rendezvous_state.h"

struct heartbeat_entry {
    struct node_identity identity;
    struct wall_time heartbeat; /* as seen last */
    struct duration silent_for;
};

/* A zeroed struct is valid and empty. */
struct heartbeat_watch {
    struct heartbeat_entry *entries; /* of the nodes in the record, in torchrun's order */
    size_t count;
    struct instant last_look;
    bool has_looked;
};

void heartbeat_watch_clear(struct heartbeat_watch *watch);

/* Takes note of the record's heartbeats. `patience` is how much time one look may account for at
 * most: about twice the time between looks. */
void heartbeat_watch_look(struct heartbeat_watch *watch, const struct rendezvous_state *state,
    struct instant now, struct duration patience);

/* How long the node's heartbeat has stood still; zero for one never seen. */
struct duration heartbeat_watch_silence(
    const struct heartbeat_watch *watch, const struct node_identity *identity);

#endif
