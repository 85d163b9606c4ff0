/* SPDX-License-Identifier: BSD-3-Clause */
/* The addresses of a store to connect to. Its names are resolved, their addresses are handed out
 * one after the other, and then the names are resolved again, because they may become known or
 * change meanwhile. The result of each attempt is kept for the error message. host/store_client
 * connects and handles deadlines and pauses. */
#ifndef MUSTER_HOST_STORE_STORE_ADDRESSES_H
#define MUSTER_HOST_STORE_STORE_ADDRESSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/failure.h"
#include "base/text.h"
#include "host/network/tcp_address.h"

/* The maximum number of addresses of one name that are tried. */
#define STORE_ADDRESSES_MOST 16

struct store_address {
    union tcp_address address;
    struct failure failure; /* of the last attempt; FAILURE_NONE: not tried yet */
};

struct store_addresses {
    char *host;
    int port;
    struct store_address *items;
    size_t count;
    size_t next;
    uint64_t attempts;
    struct failure unresolved; /* FAILURE_NONE: one of its names is known */
};

/* Copies the host: a name, an IPv4 or an IPv6 address without brackets; or several of them, parted
 * by blanks, the best first. */
void store_addresses_init(struct store_addresses *addresses, const char *host, int port);
void store_addresses_clear(struct store_addresses *addresses);

/* The address to try next. The name is resolved before the first address and after the last, which
 * blocks. NULL when the name is not known now. The pointer is valid until the next call. */
const union tcp_address *store_addresses_next(struct store_addresses *addresses);

/* Whether there is another address before the name is resolved again. */
bool store_addresses_has_more(const struct store_addresses *addresses);

/* Records the result of the attempt with the address handed out last. */
void store_addresses_note(struct store_addresses *addresses, const struct failure *failure);

/* The same for an attempt that was cut off. It does not replace the result of an earlier attempt
 * with the same address. */
void store_addresses_note_unfinished(
    struct store_addresses *addresses, const struct failure *failure);

/* Appends the attempts: "after 3 attempts: 192.0.2.1:29500: Connection refused (errno 111)". */
void store_addresses_describe(const struct store_addresses *addresses, struct text *text);

#endif
