/* SPDX-License-Identifier: BSD-3-Clause */
/* The clients of a store server that have not proved themselves yet, where a proof is wanted for
 * everything. Each has ten seconds. They are not many: when there is no room, the one that came
 * first makes way for the next, and none of one address' may take more than half of the room. So
 * whoever only connects, however often, keeps no node from coming in, and costs few descriptors.
 * This is a part of store_peers and is not used elsewhere. */
#ifndef MUSTER_HOST_STORE_STORE_PROBATION_H
#define MUSTER_HOST_STORE_STORE_PROBATION_H

#include "host/store/store_peer.h"

#define STORE_PROBATION_SECONDS 10

/* `maximum` 0: some. */
void store_probation_init(struct store_peers *peers, size_t maximum);
void store_probation_clear(struct store_peers *peers);

/* A client has come. May close others. */
void store_probation_begin(struct store_peer *peer);
/* It has proved itself, if it has. */
void store_probation_note(struct store_peer *peer);
/* It has proved itself, or is gone. */
void store_probation_end(struct store_peer *peer);

#endif
