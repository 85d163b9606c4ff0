/* SPDX-License-Identifier: BSD-3-Clause */
/* This module says whether the host of an endpoint is this machine, and so which node serves the
 * store of a job. It judges by what host/network/network_address found out, and resolves nothing
 * itself. */
#ifndef MUSTER_CORE_RENDEZVOUS_ENDPOINT_MATCH_H
#define MUSTER_CORE_RENDEZVOUS_ENDPOINT_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/failure.h"
#include "base/text.h"

/* This module chooses the name or address of this node that workers get as MASTER_ADDR. It chooses
 * from what host/local_address found out, and resolves nothing itself. */

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
 * is known, with commas between them; the first few. The name of all machines of a
 * service is such a host, and each of them takes it for its own. Returns how many there are. */
size_t endpoint_list_others(const struct endpoint_facts *facts, struct text *out);

/* Where a node listens that hosts the job's store, or may come to host it: a port, and the names
 * and addresses by which other machines find this one, the best first. As text it is
 * "29400 node7.local 10.0.0.7 fd00::7", which is what nodes announce of themselves. Values only. */

#define HOST_PLACE_TEXT_MAXIMUM ((size_t)4096)

struct host_place {
    int port;
    char *names; /* parted by single blanks; at least one */
};

void host_place_clear(struct host_place *place);

/* Appends the text. */
void host_place_write(int port, const char *names, struct text *out);

/* Reads the text, which another node has chosen. FAILURE_MALFORMED unless it is a port from 1 to
 * 65535 and names of letters, digits and ".-_:%", parted by single blanks; FAILURE_LIMIT for a text
 * that is too long. */
__attribute__((warn_unused_result)) enum failure_code host_place_parse(
    const char *text, struct host_place *out_place);

#endif
