/* SPDX-License-Identifier: BSD-3-Clause */
/* Which connection waits for which keys. A wait is one block of memory: the connection, how many
 * keys it still misses, and one registration per such key, which is a member of the list of the
 * key's entry. So waking the N waits for a key takes O(N), and forgetting a wait takes time only
 * for its own registrations. This is a part of store_table; only store_table and its parts use it.
 */
#ifndef MUSTER_CORE_STORE_STORE_WAITERS_H
#define MUSTER_CORE_STORE_STORE_WAITERS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/store/store_effects.h"
#include "core/store/store_entries.h"
#include "core/store/store_table.h"

struct store_registration {
    struct store_wait *wait;
    struct store_entry *entry; /* NULL once the key was written */
    struct store_registration *previous;
    struct store_registration *next;
};

struct store_wait {
    struct store_connection *connection;
    size_t missing;  /* registrations whose key was not written yet */
    size_t count;    /* registrations made */
    size_t capacity; /* the room for registrations */
    bool takes_item; /* its one key is that of a queue, and the reply is the front */
    struct store_registration registrations[];
};

struct store_waiters {
    struct store_entries *entries; /* borrowed; has the lists, and counts the memory */
    size_t count;                  /* connections that wait */
};

/* The cost of a wait for `capacity` missing keys, without the entries of the keys. */
size_t store_wait_size(size_t capacity);
/* Begins a wait for up to `capacity` keys. It becomes the wait of the connection, which must have
 * none. */
struct store_wait *store_wait_begin(
    struct store_waiters *waiters, struct store_connection *connection, size_t capacity);
/* Adds one missing key to the wait, at the end of the list of its entry. A key that is named
 * several times is added once. All keys of a wait are added before anything else happens. */
void store_wait_add(struct store_wait *wait, struct store_entry *entry);

/* Takes the front of the queue, if there is one, and appends the reply to QUEUE_POP. `entry` may be
 * NULL. */
void store_waiters_answer_pop(struct store_waiters *waiters, struct store_entry *entry,
    struct store_connection *connection, struct store_effects *effects);

/* The key was written: appends a reply for each connection that now misses no key. */
void store_waiters_wake_all(
    struct store_waiters *waiters, struct store_entry *entry, struct store_effects *effects);
/* The same until one connection is released. For a connection that still misses another key this
 * key counts as written, but the next connection in the list gets its turn. */
void store_waiters_wake_one(
    struct store_waiters *waiters, struct store_entry *entry, struct store_effects *effects);

/* A connection that waits for an item has sent another request: appends the reply that there is
 * none. Other waits stay. */
void store_waiters_give_way(struct store_waiters *waiters, struct store_connection *connection,
    struct store_effects *effects);

/* Forgets the wait of the connection, if it has one, and the entries that existed only for it. */
void store_waiters_drop(struct store_waiters *waiters, struct store_connection *connection);
/* Forgets every wait for this key. Entries without contents stay, so the caller sweeps them
 * afterwards. Appends the closing of each connection with `reason`, unless `effects` is NULL. */
void store_waiters_expel(struct store_waiters *waiters, struct store_entry *entry,
    const char *reason, struct store_effects *effects);

#endif
