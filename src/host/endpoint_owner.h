/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds out whether an endpoint's host is this machine; the rules are core/endpoint_match's. */
#ifndef MUSTER_HOST_ENDPOINT_OWNER_H
#define MUSTER_HOST_ENDPOINT_OWNER_H

#include <stdbool.h>

/* `host` is a name, an IPv4 or an IPv6 address without brackets. A name that is not known (yet) is
 * not this machine's, unless it is its own. Blocks while names are looked up. */
bool endpoint_owner_is_this_machine(const char *host);

#endif
