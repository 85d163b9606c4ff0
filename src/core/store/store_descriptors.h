/* SPDX-License-Identifier: BSD-3-Clause */
/* How many files an agent must be able to have open in order to serve its job's store to so many
 * nodes, and how many it keeps from the clients of its stores, so that whoever connects leaves it
 * what it needs to start its workers. Values only; host/loop/descriptor_limit knows how many it may
 * have. TorchElastic has nothing like it: there nodes that find no descriptor left fail one by one,
 * without saying why. */
#ifndef MUSTER_CORE_STORE_STORE_DESCRIPTORS_H
#define MUSTER_CORE_STORE_STORE_DESCRIPTORS_H

#include <stdint.h>

/* What the agent has open before its first worker: its own ends of the connections, event loops. */
#define STORE_DESCRIPTORS_OWN UINT64_C(48)
/* The connections of a node to the job's store. */
#define STORE_DESCRIPTORS_OF_NODE UINT64_C(3)

/* What an agent needs to start so many workers: their log files, pipes and pidfds, those of as many
 * that stand by, and some for itself. */
uint64_t store_descriptors_for_workers(uint64_t workers);

/* How much of this is kept from clients under a limit: not so much that none are served. */
uint64_t store_descriptors_kept(uint64_t wanted, uint64_t limit);

/* How many clients of a store of so many nodes may be there at once, under a limit, that have not
 * proved themselves yet. All nodes may come at the same moment. */
uint64_t store_descriptors_unproven(uint64_t nodes, uint64_t limit);

/* For so many nodes with so many connections each, beside what is kept. */
uint64_t store_descriptors_needed(uint64_t nodes, uint64_t connections_of_node, uint64_t kept);

/* How many nodes can be served under a limit. `connections_of_node` is not 0. */
uint64_t store_descriptors_nodes(uint64_t limit, uint64_t connections_of_node, uint64_t kept);

#endif
