/* SPDX-License-Identifier: BSD-3-Clause */
/* Which name or address of this node workers are told as MASTER_ADDR, chosen from what
 * host/local_address found out. Resolves nothing itself. */
#ifndef MUSTER_CORE_ADDRESS_CHOICE_H
#define MUSTER_CORE_ADDRESS_CHOICE_H

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
/* 169.254/16 and fe80::/10: of no use to others without naming an interface. */
bool network_address_is_link_local(const struct network_address *address);

/* Appends the usual text, for IPv6 without brackets and in the shortest form (RFC 5952). */
void network_address_format(const struct network_address *address, struct text *text);

/* What is known of this node. Lists may be NULL with count 0; all memory is the caller's. */
struct address_candidates {
    const char *host_name;                         /* gethostname() */
    const char *qualified_name;                    /* Python's getfqdn(), see below */
    const struct network_address *name_addresses;  /* what the qualified name resolves to here */
    size_t name_address_count;                     /* 0: it does not resolve */
    const struct network_address *local_addresses; /* of the interfaces that are up, in the kernel's
                                                      order */
    size_t local_address_count;
    bool lacks_localhost; /* that name does not resolve here: an image without /etc/hosts */
};

/* Python's getfqdn() rule: the first of canonical name and aliases that contains a dot, else the
 * canonical name; `host_name` when the lookup failed (`canonical_name` NULL). Returns one of its
 * arguments. Matches CPython Lib/socket.py getfqdn, which torch/distributed/elastic/agent/server/
 * api.py publishes. */
const char *address_choice_qualified_name(
    const char *host_name, const char *canonical_name, const char *const *aliases);

/* Appends the name a job on this node alone uses: the qualified name when everything it resolves
 * to is this machine (loopback included), as torchrun would publish; else `localhost`, or
 * 127.0.0.1 where even that name is not known, where torchrun publishes a name its own workers
 * cannot reach. */
void address_choice_for_one_node(const struct address_candidates *candidates, struct text *text);

/* Appends the name other nodes are told: the qualified name, unless it resolves to nothing but
 * loopback addresses or not at all (then other nodes would look for the store at home): the first
 * IPv4 address of an interface that is neither loopback nor link-local, else the first such IPv6
 * address, else the bare host name. */
void address_choice_for_many_nodes(const struct address_candidates *candidates, struct text *text);

#endif
