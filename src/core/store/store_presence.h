/* SPDX-License-Identifier: BSD-3-Clause */
/* Presence: a key below one prefix of a store exists only as long as the connection on which it was
 * SET. A node tells that it is there by `SET <prefix><name> <value>`. When its connection ends, its
 * keys are deleted, and the host of the store gets to know it. This module knows which connection
 * holds which key. The keys themselves are in the table like all others; the host of the store
 * deletes them there.
 *
 * - A SET binds the key to its connection. Other operations that write bind no key.
 * - As long as a key is bound, only its own connection may write it. Others are refused, whatever
 *   the operation, so that nobody else can take a node away or give it another connection's life. A
 *   node never needs that: for each connection it takes a new name (core/rendezvous_machine), and
 *   where it did not, it would be let in by the first sign of life after its old connection is
 * gone.
 * - A DELETE on the connection that holds the key unbinds it, and the host is not told.
 * - The key <prefix>served exists from the start, so that a client learns by CHECK that this server
 *   serves presence. It is bound to no connection, and no client may write it.
 *
 * torchrun has nothing like it: its nodes notice a dead node by missing heartbeats. */
#ifndef MUSTER_CORE_STORE_STORE_PRESENCE_H
#define MUSTER_CORE_STORE_STORE_PRESENCE_H

#include <stddef.h>

#include "core/store/store_request.h"

#define STORE_PRESENCE_NAME_BYTES ((size_t)512)
#define STORE_PRESENCE_VALUE_BYTES ((size_t)512)
#define STORE_PRESENCE_KEYS ((size_t)65536)
/* The name of the key which says that presence is served. */
#define STORE_PRESENCE_SERVED "served"

struct store_presence;

/* A connection as this module sees it. The host embeds one in each of its connections, and its
 * address is the identity. A zeroed struct with `owner` set holds no key. */
struct store_presence_holder {
    void *owner; /* belongs to the host; this module does not use it */
    struct store_presence_key *first;
};

/* One key that a connection holds or has held. */
struct store_presence_key {
    char *raw_key;    /* the key in the table */
    const char *name; /* the part after the prefix; points into raw_key */
    char *value;
    struct store_presence_holder *holder; /* NULL: its connection has ended */
    struct store_presence_key *next; /* in the list of the holder, or of the keys that are gone */
    struct store_presence_key *previous;
};

/* Copies the raw prefix. With NULL or "" there are no presence keys. The result is never NULL. */
struct store_presence *store_presence_new(const char *raw_prefix);
/* Accepts NULL. The holders may be freed before. */
void store_presence_free(struct store_presence *presence);

/* The raw key which says that presence is served; empty without a prefix. It belongs to `presence`.
 */
const char *store_presence_served_key(const struct store_presence *presence);

/* Whether the request is refused, and its connection closed: returns the reason, or NULL when there
 * is none. Reasons are an empty name, a name or value that is too long or holds a NUL, and too many
 * keys. */
const char *store_presence_objection(
    const struct store_presence *presence, const struct store_request *request);

/* Whether the request is not carried out, because it would write a key that belongs to another
 * connection or to the server: returns the reason, or NULL when it is carried out. */
const char *store_presence_refusal(const struct store_presence *presence,
    const struct store_presence_holder *holder, const struct store_request *request);

/* Takes note of a request without objection and refusal, after the table has carried it out.
 * Returns the key that a SET has bound, or NULL for every other request. The key belongs to
 * `presence`. */
const struct store_presence_key *store_presence_note(struct store_presence *presence,
    struct store_presence_holder *holder, const struct store_request *request);

/* The connection has ended: its keys are gone, see store_presence_take_gone. */
void store_presence_leave(struct store_presence *presence, struct store_presence_holder *holder);

/* Takes the next key that is gone, in the order in which the connections ended; or NULL. The caller
 * deletes the key from the table and frees it with store_presence_key_free. */
struct store_presence_key *store_presence_take_gone(struct store_presence *presence);
/* Accepts NULL. */
void store_presence_key_free(struct store_presence_key *key);

/* The holder of the key with this name, or NULL. */
struct store_presence_holder *store_presence_find(
    const struct store_presence *presence, const char *name);

#endif
