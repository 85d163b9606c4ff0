/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/store/store_descriptors.h"

uint64_t store_descriptors_needed(uint64_t nodes, uint64_t connections_of_node) {
    return STORE_DESCRIPTORS_OWN + nodes * connections_of_node;
}

uint64_t store_descriptors_nodes(uint64_t limit, uint64_t connections_of_node) {
    return limit > STORE_DESCRIPTORS_OWN ? (limit - STORE_DESCRIPTORS_OWN) / connections_of_node
                                         : 0;
}
