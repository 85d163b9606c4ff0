/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/endpoint_match.h"

#include "base/text.h"

static bool contains(
    const struct network_address *addresses, size_t count, const struct network_address *address) {
    for (size_t i = 0; i < count; i++) {
        if (network_address_equals(&addresses[i], address)) {
            return true;
        }
    }
    return false;
}

bool endpoint_matches_machine(const struct endpoint_facts *facts) {
    if (text_equals(facts->host, "localhost") || text_equals(facts->host, facts->own_name)) {
        return true;
    }
    if (facts->own_canonical_name != NULL && text_equals(facts->host, facts->own_canonical_name)) {
        return true;
    }
    for (size_t i = 0; i < facts->host_address_count; i++) {
        const struct network_address *address = &facts->host_addresses[i];
        if (network_address_is_loopback(address) ||
            contains(facts->name_addresses, facts->name_address_count, address) ||
            contains(facts->local_addresses, facts->local_address_count, address)) {
            return true;
        }
    }
    return false;
}
