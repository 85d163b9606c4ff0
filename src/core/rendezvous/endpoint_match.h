/* SPDX-License-Identifier: BSD-3-Clause */
/* This module says whether the host of an endpoint is this machine, and so which node serves the
 * store of a job. It judges by what host/endpoint_owner found out, and resolves nothing itself. */
#ifndef MUSTER_CORE_RENDEZVOUS_ENDPOINT_MATCH_H
#define MUSTER_CORE_RENDEZVOUS_ENDPOINT_MATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "core/rendezvous/address_choice.h"

/* All memory is the caller's. A list may be NULL when its count is 0. */
struct endpoint_facts {
    const char *host; /* of the endpoint, as the user wrote it */
    /* what `host` resolves to here; `host` itself if it is an address */
    const struct network_address *host_addresses;
    size_t host_address_count;                    /* 0: it does not resolve */
    const char *given_address;                    /* --local-addr, or NULL */
    const char *own_name;                         /* gethostname() */
    const char *own_canonical_name;               /* the resolver's for own_name, or NULL */
    const struct network_address *name_addresses; /* what own_name resolves to */
    size_t name_address_count;
    const struct network_address *local_addresses; /* of the interfaces that are up */
    size_t local_address_count;
};

/* True for the following hosts:
 * - "localhost", and the address that this node was given;
 * - this machine's host name, its canonical name, and the leading labels of both ("node0.train" of
 *   "node0.train.svc.cluster.local");
 * - an address that is loopback, an address of this machine's name, or an address of one of its
 *   interfaces; and a name that resolves to such an address.
 *
 * Matches elastic/rendezvous/utils.py _matches_machine_hostname, which knows less. It does not know
 * the interfaces: no node owns the address of a second network card there, and all nodes wait for a
 * host that never comes. It does not know names that resolve to loopback. It accepts the leading
 * labels of a name only if they resolve. */
bool endpoint_matches_machine(const struct endpoint_facts *facts);

/* Appends the addresses of a host which is this machine that are not this machine's, as far as it
 * is known, with commas between them; at most ENDPOINT_OTHERS_LISTED. The name of all machines of a
 * service is such a host, and each of them takes it for its own. Returns how many there are. */
#define ENDPOINT_OTHERS_LISTED 8
size_t endpoint_list_others(const struct endpoint_facts *facts, struct text *out);

#endif
