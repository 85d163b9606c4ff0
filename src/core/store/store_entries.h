/* SPDX-License-Identifier: BSD-3-Clause */
/* What the store holds for each key: a value, a queue, and the list of the connections that wait
 * for the key. An entry exists as long as it has one of the three. Every byte counts against one
 * memory limit. For each function that adds something, another function tells its cost beforehand,
 * so that a request can be refused before it has changed anything. This is a part of store_table;
 * only store_table and its parts use it. */
#ifndef MUSTER_CORE_STORE_STORE_ENTRIES_H
#define MUSTER_CORE_STORE_STORE_ENTRIES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"
#include "base/table.h"

struct store_census;
struct store_registration;

struct store_queue_item {
    struct store_queue_item *next;
    size_t length;
    uint8_t data[];
};

struct store_entry {
    struct slice key; /* owned by the hash table */
    bool has_value;
    uint8_t *value;
    size_t value_length;
    size_t value_capacity;
    struct store_queue_item *queue_front;
    struct store_queue_item *queue_back;
    size_t queue_length;
    size_t queue_bytes;                      /* memory of the items in the queue */
    struct store_registration *first_waiter; /* store_waiters maintains both */
    struct store_registration *last_waiter;
};

struct store_entries {
    struct table *table;
    size_t memory;       /* bytes held, bookkeeping included */
    size_t memory_limit; /* for `memory` and `reserved` together */
    size_t reserved;     /* what other users have taken of the limit */
    /* The part of the limit that requests for the keys of the store's owner may use alone, and
     * whether the present request is one. */
    size_t owner_reserve;
    bool is_owners;
    struct store_census *census;    /* or NULL; store_census maintains it */
    struct store_queue_item *taken; /* or NULL; see store_queue_take */
    size_t value_count;             /* entries that have a value */
};

void store_entries_init(struct store_entries *entries, size_t memory_limit);
/* No connection may wait when this is called. */
void store_entries_clear(struct store_entries *entries);

/* Whether there is room for `size` more bytes. */
bool store_entries_have_room(const struct store_entries *entries, size_t size);

/* The entry, or NULL. */
struct store_entry *store_entries_find(const struct store_entries *entries, struct slice key);
/* Adds an entry for a key that has none. The caller releases it if it gets no contents. */
struct store_entry *store_entries_add(struct store_entries *entries, struct slice key);
/* The cost of store_entries_add. */
size_t store_entries_add_size(struct slice key);
/* Frees the entry if it holds nothing. */
void store_entries_release(struct store_entries *entries, struct store_entry *entry);
/* Frees every entry that holds nothing. */
void store_entries_sweep(struct store_entries *entries);

/* `entry` may be NULL, which counts as an entry that holds nothing. */
bool store_entry_is_present(const struct store_entry *entry);
struct slice store_entry_value(const struct store_entry *entry);

/* The additional cost of a value of this length; 0 when it fits into the memory of the old value.
 * NULL stands for an entry that is not added yet; the result does not contain the cost of adding
 * it. */
size_t store_entry_growth(const struct store_entry *entry, size_t length);
void store_entry_set_value(
    struct store_entries *entries, struct store_entry *entry, struct slice value);
/* The memory of the value grows by half of its length, if there is room for that, so that many
 * small appends stay cheap. */
void store_entry_append_value(
    struct store_entries *entries, struct store_entry *entry, struct slice value);
void store_entry_remove_value(struct store_entries *entries, struct store_entry *entry);

/* The cost of an item of this length. */
size_t store_queue_item_size(size_t length);
void store_queue_push(struct store_entries *entries, struct store_entry *entry, struct slice value);
/* Removes and returns the front of the queue, which must not be empty. It stays, and its memory
 * counts, until store_queue_free_taken. One item at most is taken at a time. */
struct slice store_queue_take(struct store_entries *entries, struct store_entry *entry);
void store_queue_free_taken(struct store_entries *entries);
void store_queue_empty(struct store_entries *entries, struct store_entry *entry);

#endif
