/* SPDX-License-Identifier: BSD-3-Clause */
/* This module finds the nodes that have fallen silent by their heartbeats in the record. It
 * compares no clocks of different nodes: it measures, on this node's own clock, how long a
 * heartbeat has not changed. Only time in which this node read the record counts. So a node that
 * was stopped for a minute does not take the other nodes for silent. Replaces the comparison of
 * wall clocks in _BackendRendezvousStateHolder._sanitize of
 * torch/distributed/elastic/rendezvous/dynamic_rendezvous.py. */
#ifndef MUSTER_CORE_RENDEZVOUS_HEARTBEAT_WATCH_H
#define MUSTER_CORE_RENDEZVOUS_HEARTBEAT_WATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "base/duration.h"
#include "core/rendezvous/node_identity.h"
#include "core/rendezvous/rendezvous_state.h"

struct heartbeat_entry {
    struct node_identity identity;
    struct wall_time heartbeat; /* as this node saw it last */
    struct duration silent_for;
};

/* A zeroed struct is valid and empty. */
struct heartbeat_watch {
    struct heartbeat_entry *entries; /* of the nodes that are looked at, in torchrun's order */
    size_t count;
    struct instant last_look;
    bool has_looked;
};

void heartbeat_watch_clear(struct heartbeat_watch *watch);

/* Takes note of the heartbeats in the record; of torchrun's nodes alone where others tell of
 * Muster's. One look adds at most `patience` to the silence of a node. It should be about twice the
 * time between two looks. */
void heartbeat_watch_look(struct heartbeat_watch *watch, const struct rendezvous_state *state,
    struct instant now, struct duration patience, bool of_torchrun_alone);

/* How long the heartbeat of the node has not changed. Zero for a node that was never seen. */
struct duration heartbeat_watch_silence(
    const struct heartbeat_watch *watch, const struct node_identity *identity);

#endif
