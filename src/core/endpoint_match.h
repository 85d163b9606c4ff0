/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether an endpoint's host is this machine, from what host/endpoint_owner found out: it decides
 * which node serves the store of a job. Resolves nothing itself. */
#ifndef MUSTER_CORE_ENDPOINT_MATCH_H
#define MUSTER_CORE_ENDPOINT_MATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "core/address_choice.h"

/* All memory is the caller's; lists may be NULL with count 0. */
struct endpoint_facts {
    const char *host;                             /* of the endpoint, as the user wrote it */
    const struct network_address *host_addresses; /* what it resolves to here, itself if it is an
                                                     address */
    size_t host_address_count;                    /* 0: it does not resolve */
    const char *own_name;                         /* gethostname() */
    const char *own_canonical_name;               /* the resolver's for own_name, or NULL */
    const struct network_address *name_addresses; /* what own_name resolves to */
    size_t name_address_count;
    const struct network_address *local_addresses; /* of the interfaces that are up */
    size_t local_address_count;
};

/* True for "localhost"; for this machine's host name and its canonical form; for an address, or a
 * name that resolves to one, that is loopback, an address of this machine's name, or an address of
 * any of its interfaces. Matches elastic/rendezvous/utils.py _matches_machine_hostname, which knows
 * neither the interfaces (an address of a second network card is nobody's there, and all nodes wait
 * for a host that never comes) nor names that resolve to loopback. */
bool endpoint_matches_machine(const struct endpoint_facts *facts);

#endif
