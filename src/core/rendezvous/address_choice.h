/* SPDX-License-Identifier: BSD-3-Clause */
/* This module chooses the name or address of this node that workers get as MASTER_ADDR. It chooses
 * from what host/local_address found out, and resolves nothing itself. */
#ifndef MUSTER_CORE_RENDEZVOUS_ADDRESS_CHOICE_H
#define MUSTER_CORE_RENDEZVOUS_ADDRESS_CHOICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

/* An IPv4 address (4 bytes used) or an IPv6 address, in network order. */
struct network_address {
    bool is_ipv6;
    uint8_t bytes[16];
};

bool network_address_equals(
    const struct network_address *left, const struct network_address *right);
/* 127/8, ::1, and 127/8 mapped into IPv6. */
bool network_address_is_loopback(const struct network_address *address);
/* 169.254/16 and fe80::/10: other machines can use such an address only together with an interface.
 */
bool network_address_is_link_local(const struct network_address *address);

/* Appends the usual text, for IPv6 without brackets and in the shortest form (RFC 5952). */
void network_address_format(const struct network_address *address, struct text *text);

/* Whether getaddrinfo takes the name for an IPv4 address, whichever machine has it: "1234", "0x7f",
 * "10.1", but also "10.0.0.1". A machine may be called so. */
bool address_choice_is_number(const char *name);

/* What host/local_address found out about this node. A list may be NULL when its count is 0. All
 * memory is the caller's. */
struct address_candidates {
    const char *host_name;                        /* gethostname() */
    const char *qualified_name;                   /* Python's getfqdn(), see below */
    const struct network_address *name_addresses; /* what the qualified name resolves to here */
    size_t name_address_count;                    /* 0: it does not resolve */
    /* the addresses of the interfaces that are up, in the kernel's order */
    const struct network_address *local_addresses;
    size_t local_address_count;
    bool lacks_localhost; /* "localhost" does not resolve here: an image without /etc/hosts */
};

/* Python's rule for getfqdn(): returns the first of the canonical name and the aliases that
 * contains a dot, else the canonical name. When the lookup failed (`canonical_name` is NULL),
 * returns `host_name`. The result is one of the arguments. Matches CPython Lib/socket.py getfqdn,
 * which torch/distributed/elastic/agent/server/api.py publishes. */
const char *address_choice_qualified_name(
    const char *host_name, const char *canonical_name, const char *const *aliases);

/* Appends the name that a job on this node alone uses. When every address of the qualified name is
 * this machine's (loopback included), it is the qualified name, which torchrun publishes too.
 * Otherwise it is `localhost`, or 127.0.0.1 where `localhost` does not resolve. There torchrun
 * publishes a name that its own workers cannot reach. */
void address_choice_for_one_node(const struct address_candidates *candidates, struct text *text);

/* Appends the name that other nodes get. It is the qualified name when this name resolves to an
 * address that is not loopback; otherwise other nodes would look for the store on their own
 * machine. The next choices are the first IPv4 address of an interface that is neither loopback nor
 * link-local, the first such IPv6 address, and the bare host name. On a machine with only loopback
 * addresses all nodes of the job are on this machine, so the name is the one for a single node. A
 * name that is taken for a number is never chosen. */
void address_choice_for_many_nodes(const struct address_candidates *candidates, struct text *text);

#endif
