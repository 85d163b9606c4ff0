/* SPDX-License-Identifier: BSD-3-Clause */
/* Who is there: keys below one prefix of a store that live as long as the connection which SET
 * them. A node says "I am here" with `SET <prefix><name> <value>`; when its connection ends, its
 * keys end with it, and the store's host is told. This module knows which connection holds which
 * key; the keys themselves are in the table like all others, and whoever has both deletes them.
 *
 * - A SET binds the key to its connection; one made by another connection moves it there. Other
 *   operations that write bind nothing.
 * - A DELETE by the connection that holds the key is a goodbye: it is unbound and nobody is told.
 *   A DELETE by another takes the value out of the table and changes nothing here.
 * - The key <prefix>served exists from the start, so that a client learns by CHECK that presence is
 *   served here. It binds nobody.
 *
 * Upstream has nothing like it: torchrun's nodes learn of a dead one by missing heartbeats. */
#ifndef MUSTER_CORE_STORE_PRESENCE_H
#define MUSTER_CORE_STORE_PRESENCE_H

#include <stddef.h>

#include "core/store_request.h"

#define STORE_PRESENCE_NAME_BYTES ((size_t)512)
#define STORE_PRESENCE_VALUE_BYTES ((size_t)512)
#define STORE_PRESENCE_KEYS ((size_t)65536)
/* The name of the key that says that presence is served. */
#define STORE_PRESENCE_SERVED "served"

struct store_presence;

/* A connection as this module sees it: the host embeds one in each; its address is the identity. A
 * zeroed struct (with `owner` set) holds nothing. */
struct store_presence_holder {
    void *owner; /* the host's own; not looked at here */
    struct store_presence_key *first;
};

/* One key that somebody holds, or held. */
struct store_presence_key {
    char *raw_key;    /* as the table has it */
    const char *name; /* what follows the prefix; within raw_key */
    char *value;
    struct store_presence_holder *holder; /* NULL: gone */
    struct store_presence_key *next;      /* of the same holder, or of those gone */
    struct store_presence_key *previous;
};

/* Copies the raw prefix; with NULL or "" no key tells who is there. Never NULL. */
struct store_presence *store_presence_new(const char *raw_prefix);
/* Holders are not looked at any more, and may be gone. NULL is fine. */
void store_presence_free(struct store_presence *presence);

/* The raw key that says that presence is served; empty without a prefix. Belongs to `presence`. */
const char *store_presence_served_key(const struct store_presence *presence);

/* Why the connection that asks this must be closed instead: a name that is empty, a name or value
 * that is too long or holds a NUL, one key too many. NULL: nothing against it. */
const char *store_presence_objection(
    const struct store_presence *presence, const struct store_request *request);

/* Takes note of a request without objection, after the table has carried it out. Returns the key it
 * has SET (it belongs to `presence`), or NULL for everything else. */
const struct store_presence_key *store_presence_note(struct store_presence *presence,
    struct store_presence_holder *holder, const struct store_request *request);

/* The connection is over: its keys are gone, see store_presence_take_gone. */
void store_presence_leave(struct store_presence *presence, struct store_presence_holder *holder);

/* The next key that is gone, in the order of the connections' ends, or NULL. The caller deletes it
 * from the table and frees it with store_presence_key_free. */
struct store_presence_key *store_presence_take_gone(struct store_presence *presence);
/* NULL is fine. */
void store_presence_key_free(struct store_presence_key *key);

/* Who holds the key of this name, or NULL. */
struct store_presence_holder *store_presence_find(
    const struct store_presence *presence, const char *name);

#endif
