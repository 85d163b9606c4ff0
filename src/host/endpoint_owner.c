/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/endpoint_owner.h"

#include <stdlib.h>

#include "core/endpoint_match.h"
#include "host/address_list.h"
#include "host/local_address.h"

bool endpoint_owner_is_this_machine(const char *host) {
    char *own_name = NULL;
    char *canonical_name = NULL;
    struct address_list own = {0};
    if (local_address_host_name(&own_name, NULL) == FAILURE_NONE) {
        own = address_list_of_name(own_name, &canonical_name);
    }
    struct address_list wanted = address_list_of_name(host, NULL);
    struct address_list local = address_list_of_interfaces();
    const struct endpoint_facts facts = {
        .host = host,
        .host_addresses = wanted.items,
        .host_address_count = wanted.count,
        .own_name = own_name != NULL ? own_name : "localhost",
        .own_canonical_name = canonical_name,
        .name_addresses = own.items,
        .name_address_count = own.count,
        .local_addresses = local.items,
        .local_address_count = local.count,
    };
    bool is_own = endpoint_matches_machine(&facts);
    address_list_clear(&own);
    address_list_clear(&wanted);
    address_list_clear(&local);
    free(canonical_name);
    free(own_name);
    return is_own;
}
