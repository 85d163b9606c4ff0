/* SPDX-License-Identifier: BSD-3-Clause */
/* How many files an agent must be able to have open in order to serve its job's store to so many
 * nodes. Values only; host/loop/descriptor_limit knows how many it may. TorchElastic has nothing
 * like it: there nodes that find no descriptor left fail one by one, without saying why. */
#ifndef MUSTER_CORE_STORE_STORE_DESCRIPTORS_H
#define MUSTER_CORE_STORE_STORE_DESCRIPTORS_H

#include <stdint.h>

/* What the agent has open besides: its own ends of the connections, event loops, log files, pipes
 * and pidfds of a few workers. */
#define STORE_DESCRIPTORS_OWN UINT64_C(64)

/* For so many nodes with so many connections each. */
uint64_t store_descriptors_needed(uint64_t nodes, uint64_t connections_of_node);

/* How many nodes can be served under a limit. `connections_of_node` is not 0. */
uint64_t store_descriptors_nodes(uint64_t limit, uint64_t connections_of_node);

#endif
