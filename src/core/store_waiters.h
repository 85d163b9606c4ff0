/* SPDX-License-Identifier: BSD-3-Clause */
/* Who waits for what. A wait is one block of memory: the connection, how many keys it still
 * misses, and one registration per such key, threaded into the list of that key's entry. So waking
 * the N waiters of a key takes O(N), and forgetting a wait takes time for its own registrations
 * only. A part of store_table; not for others. */
#ifndef MUSTER_CORE_STORE_WAITERS_H
#define MUSTER_CORE_STORE_WAITERS_H

#include <stddef.h>

#include "core/store_effects.h"
#include "core/store_entries.h"
#include "core/store_table.h"

struct store_registration {
    struct store_wait *wait;
    struct store_entry *entry; /* NULL once the key was seen */
    struct store_registration *previous;
    struct store_registration *next;
};

struct store_wait {
    struct store_connection *connection;
    size_t missing;  /* registrations whose key was not seen yet */
    size_t count;    /* registrations made */
    size_t capacity; /* registrations there is room for */
    struct store_registration registrations[];
};

struct store_waiters {
    struct store_entries *entries; /* borrowed; holds the lists and keeps the account */
    size_t count;                  /* connections that wait */
};

/* What a wait for so many missing keys costs, the keys' entries aside. */
size_t store_wait_size(size_t capacity);
/* A wait for up to `capacity` keys, which becomes the connection's; it must have none. */
struct store_wait *store_wait_begin(
    struct store_waiters *waiters, struct store_connection *connection, size_t capacity);
/* Adds one missing key, at the end of the line of those who wait for it; once, however often it is
 * named. All keys of a wait are added before anything else happens. */
void store_wait_add(struct store_wait *wait, struct store_entry *entry);

/* The key was written: appends a reply for each connection that misses nothing any more. */
void store_waiters_wake_all(
    struct store_waiters *waiters, struct store_entry *entry, struct store_effects *effects);
/* The same down the line until one connection is released: who still misses another key has seen
 * this one, but leaves it to the next in line. */
void store_waiters_wake_one(
    struct store_waiters *waiters, struct store_entry *entry, struct store_effects *effects);

/* Forgets what the connection waits for, if anything, and the entries that existed for that. */
void store_waiters_drop(struct store_waiters *waiters, struct store_connection *connection);
/* Forgets every wait that names this key. Entries left without contents stay: sweep them after. A
 * closing with `reason` is appended for each connection, unless `effects` is NULL. */
void store_waiters_expel(struct store_waiters *waiters, struct store_entry *entry,
    const char *reason, struct store_effects *effects);

#endif
