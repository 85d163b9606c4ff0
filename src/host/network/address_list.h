/* SPDX-License-Identifier: BSD-3-Clause */
/* IP addresses of a name or of this machine, as the system knows them. Other modules decide what to
 * do with them. The resolver is called directly (no thread is started) and may wait for a name
 * server. */
#ifndef MUSTER_HOST_NETWORK_ADDRESS_LIST_H
#define MUSTER_HOST_NETWORK_ADDRESS_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "core/rendezvous/endpoint_match.h"
#include "host/network/tcp_address.h"

/* A zeroed struct is a valid empty list. */
struct address_list {
    struct network_address *items;
    size_t count;
    size_t capacity;
};

void address_list_clear(struct address_list *list);

/* The addresses of a name, or of an address as text; empty when it does not resolve.
 * `out_canonical_name` becomes the resolver's name for it, which the caller frees, or NULL; pass
 * NULL if it is not wanted. */
struct address_list address_list_of_name(const char *name, char **out_canonical_name);

/* An address as text; empty when the text is a name. The resolver is not asked. */
struct address_list address_list_of_address(const char *text);

/* The addresses of all interfaces that are up, in the kernel's order. */
struct address_list address_list_of_interfaces(void);

/* Whether the host is one of these, or any loopback address. */
bool address_list_is_of_interface(const union tcp_address *address);

/* Puts those in front from which this machine's packets go to far networks: other machines reach
 * them more likely than those of a bridge for containers, or of a network for storage. */
void address_list_put_outgoing_first(struct address_list *list);

#endif
