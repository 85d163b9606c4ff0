/* SPDX-License-Identifier: BSD-3-Clause */
/* The addresses of a store that is being dialled: resolved, handed out one after the other,
 * resolved again (a name may become known, or mean another machine, while somebody waits for it);
 * and what became of each, for the message when nothing came of any. Connecting, deadlines and
 * pauses are host/store_client's. */
#ifndef MUSTER_HOST_STORE_ADDRESSES_H
#define MUSTER_HOST_STORE_ADDRESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/failure.h"
#include "base/text.h"
#include "host/tcp_address.h"

/* More addresses than this of one name are not looked at. */
#define STORE_ADDRESSES_MOST 16

struct store_address {
    union tcp_address address;
    struct failure failure; /* of the last attempt; FAILURE_NONE: not tried yet */
};

struct store_addresses {
    char *host;
    int port;
    struct store_address items[STORE_ADDRESSES_MOST];
    size_t count;
    size_t next;
    uint64_t attempts;
    struct failure unresolved; /* FAILURE_NONE: the name is known */
};

/* Copies the host: a name, an IPv4 or an IPv6 address without brackets. */
void store_addresses_init(struct store_addresses *addresses, const char *host, int port);
void store_addresses_clear(struct store_addresses *addresses);

/* The address to try next; resolves the name (which blocks) at first and after the last. NULL when
 * the name is not known now. The address stays where it is until the next call. */
const union tcp_address *store_addresses_next(struct store_addresses *addresses);

/* Whether there is another to try before the name is resolved again. */
bool store_addresses_has_more(const struct store_addresses *addresses);

/* What the attempt with the address handed out last ran into. */
void store_addresses_note(struct store_addresses *addresses, const struct failure *failure);

/* The same of an attempt that was cut off: it tells nothing about an address of which an earlier
 * attempt has told something. */
void store_addresses_note_unfinished(
    struct store_addresses *addresses, const struct failure *failure);

/* Appends what was tried, "after 3 attempts: 192.0.2.1:29500: Connection refused (errno 111)". */
void store_addresses_describe(const struct store_addresses *addresses, struct text *text);

#endif
