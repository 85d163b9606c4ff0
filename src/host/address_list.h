/* SPDX-License-Identifier: BSD-3-Clause */
/* IP addresses of a name or of this machine, as the system knows them. What is made of them is
 * decided elsewhere. Asks the resolver directly (no thread is started), which may wait for a name
 * server. */
#ifndef MUSTER_HOST_ADDRESS_LIST_H
#define MUSTER_HOST_ADDRESS_LIST_H

#include <stddef.h>

#include "core/address_choice.h"

/* A zeroed struct is a valid empty list. */
struct address_list {
    struct network_address *items;
    size_t count;
    size_t capacity;
};

void address_list_clear(struct address_list *list);

/* What a name, or an address as text, resolves to; nothing when it does not. `out_canonical_name`
 * (NULL: not asked for) is the resolver's name for it, which the caller frees, or NULL. */
struct address_list address_list_of_name(const char *name, char **out_canonical_name);

/* Of all interfaces that are up, in the kernel's order. */
struct address_list address_list_of_interfaces(void);

#endif
