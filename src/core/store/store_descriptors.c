/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/store/store_descriptors.h"

/* Two log files, two pipes, a pidfd and the socket of a worker; as much again of one that stands
 * by; and what starting takes for a moment. */
#define OF_WORKER UINT64_C(16)
#define FOR_ITSELF UINT64_C(32)
/* With fewer descriptors than this most are the agent's own already. */
#define ROOMY_LIMIT UINT64_C(256)

uint64_t store_descriptors_for_workers(uint64_t workers) {
    return workers * OF_WORKER + FOR_ITSELF;
}

uint64_t store_descriptors_kept(uint64_t wanted, uint64_t limit) {
    uint64_t most = limit < ROOMY_LIMIT ? limit / 4 : limit / 2;
    return wanted < most ? wanted : most;
}

/* Twice what the nodes need, because half of it is all that one address gets. */
uint64_t store_descriptors_unproven(uint64_t nodes, uint64_t limit) {
    uint64_t wanted = 2 * (nodes * STORE_DESCRIPTORS_OF_NODE + FOR_ITSELF);
    uint64_t most = limit / 4;
    return wanted < most ? wanted : most;
}

uint64_t store_descriptors_needed(uint64_t nodes, uint64_t connections_of_node, uint64_t kept) {
    return STORE_DESCRIPTORS_OWN + kept + nodes * connections_of_node;
}

uint64_t store_descriptors_nodes(uint64_t limit, uint64_t connections_of_node, uint64_t kept) {
    uint64_t own = STORE_DESCRIPTORS_OWN + store_descriptors_kept(kept, limit);
    return limit > own ? (limit - own) / connections_of_node : 0;
}
