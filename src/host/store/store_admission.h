/* SPDX-License-Identifier: BSD-3-Clause */
/* Which machines a store serves besides its own: all, or those with the addresses of a list. The
 * agent's thread changes it while the store's thread asks. A change holds for the very next
 * connection: a letter to the store's thread could come after a worker that the change lets in. So
 * this is one of the few things that threads share, under a lock. */
#ifndef MUSTER_HOST_STORE_STORE_ADMISSION_H
#define MUSTER_HOST_STORE_STORE_ADMISSION_H

#include <stdbool.h>
#include <stddef.h>

#include "host/network/network_address.h"

struct store_admission;

/* At first all machines, or none but the store's own. Never NULL. */
struct store_admission *store_admission_new(bool is_open);
/* Accepts NULL. No store uses it any more. */
void store_admission_free(struct store_admission *admission);

/* From now on all machines. */
void store_admission_open(struct store_admission *admission);
/* From now on only machines with these addresses, which are parted by blanks. Words that are no
 * address are left out. Returns how many different ones there are. */
size_t store_admission_limit(struct store_admission *admission, const char *addresses);

/* Whether a client with this address, on another machine, is served. IPv4 addresses in the form of
 * IPv6 are IPv4 addresses. */
bool store_admission_admits(struct store_admission *admission, const union tcp_address *peer);

/* Whether it is news that this client is not served: true the first time for each address. Many
 * addresses may be forgotten. */
bool store_admission_is_news(struct store_admission *admission, const union tcp_address *peer);

#endif
