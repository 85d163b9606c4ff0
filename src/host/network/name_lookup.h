/* SPDX-License-Identifier: BSD-3-Clause */
/* The addresses of names and the names of addresses, as this system is set up to find them.
 *
 * libc's lookups hold locks. In a copy of a program with threads such a lock may be held for ever,
 * by a thread that is not there. There `getent` looks up, which asks the same libc in a process of
 * its own. */
#ifndef MUSTER_HOST_NETWORK_NAME_LOOKUP_H
#define MUSTER_HOST_NETWORK_NAME_LOOKUP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/failure.h"
#include "base/text.h"
#include "host/network/tcp_address.h"

/* From now on this process asks getent, where there is one. Before any thread is started. */
void name_lookup_use_getent(void);

struct name_addresses {
    union tcp_address *items; /* with port 0 */
    size_t count;
    size_t capacity;
    char *canonical_name; /* or NULL */
};

void name_addresses_clear(struct name_addresses *addresses);

/* As getaddrinfo with `flags`, for sockets of streams. Returns 0 or getaddrinfo's error, which
 * for EAI_SYSTEM is in errno. The caller clears the addresses. `localhost` is this machine also
 * where neither /etc/hosts nor a name server knows it, as in a bare container. */
__attribute__((warn_unused_result)) int name_lookup_addresses(
    const char *name, int flags, struct name_addresses *out_addresses);
/* Whether this system knows `localhost`: other programs, such as workers, can use the name then. */
bool name_lookup_knows_localhost(void);
/* As gai_strerror. */
const char *name_lookup_words(int status);

/* As gethostbyaddr of 4 or 16 bytes: the name, then its aliases. An address without a name gives an
 * empty list. */
void name_lookup_names(const unsigned char *address, bool is_ipv6, struct text_list *out_names);

/* Finds the addresses of a host (a name, an IPv4 address, or an IPv6 address without brackets), the
 * best first, and writes at most `most` of them. FAILURE_SYSTEM when the name is not known (now).
 * This blocks: the resolver is called on this thread, so that no other thread is started. */
__attribute__((warn_unused_result)) enum failure_code name_lookup_resolve(const char *host,
    int port, union tcp_address *out_addresses, size_t most, size_t *out_count,
    struct failure *failure);

#endif
