/* SPDX-License-Identifier: BSD-3-Clause */
/* What the store holds, key by key: a value, a queue, and the list of those who wait for the key.
 * An entry exists as long as it has one of the three. Every byte is counted against one limit, and
 * the functions that grow something say beforehand what it would cost, so that a request can be
 * refused before it has changed anything. A part of store_table; not for others. */
#ifndef MUSTER_CORE_STORE_ENTRIES_H
#define MUSTER_CORE_STORE_ENTRIES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"
#include "base/table.h"

struct store_registration;

struct store_queue_item {
    struct store_queue_item *next;
    size_t length;
    uint8_t data[];
};

struct store_entry {
    struct slice key; /* the hash table's copy */
    bool has_value;
    uint8_t *value;
    size_t value_length;
    size_t value_capacity;
    struct store_queue_item *queue_front;
    struct store_queue_item *queue_back;
    size_t queue_length;
    struct store_registration *first_waiter; /* kept by store_waiters */
    struct store_registration *last_waiter;
};

struct store_entries {
    struct table *table;
    size_t memory;       /* bytes held, bookkeeping included */
    size_t memory_limit; /* never passed by what is held and reserved */
    size_t reserved;     /* of the limit, by others */
    size_t value_count;  /* entries that have a value */
};

void store_entries_init(struct store_entries *entries, size_t memory_limit);
/* Nobody may wait any more. */
void store_entries_clear(struct store_entries *entries);

/* Whether so many more bytes may be held. */
bool store_entries_have_room(const struct store_entries *entries, size_t size);

/* The entry, or NULL. */
struct store_entry *store_entries_find(const struct store_entries *entries, struct slice key);
/* A new entry for a key that has none; release it if it is left without contents. */
struct store_entry *store_entries_add(struct store_entries *entries, struct slice key);
/* What store_entries_add costs. */
size_t store_entries_add_size(struct slice key);
/* Frees the entry if it holds nothing. */
void store_entries_release(struct store_entries *entries, struct store_entry *entry);
/* Frees every entry that holds nothing. */
void store_entries_sweep(struct store_entries *entries);

/* NULL is an entry that holds nothing. */
bool store_entry_is_present(const struct store_entry *entry);
struct slice store_entry_value(const struct store_entry *entry);

/* What a value of this length costs beyond what is held already; 0 when it fits where the old one
 * is. NULL is an entry that is still to be added, whose own cost is not part of the result. */
size_t store_entry_growth(const struct store_entry *entry, size_t length);
void store_entry_set_value(
    struct store_entries *entries, struct store_entry *entry, struct slice value);
/* Grows by half so that many small appends stay cheap, while there is room for that. */
void store_entry_append_value(
    struct store_entries *entries, struct store_entry *entry, struct slice value);
void store_entry_remove_value(struct store_entries *entries, struct store_entry *entry);

/* What an item of this length costs. */
size_t store_queue_item_size(size_t length);
void store_queue_push(struct store_entries *entries, struct store_entry *entry, struct slice value);
/* The front of the queue, or NULL; it stays counted until store_queue_free_item. */
struct store_queue_item *store_queue_pop(struct store_entry *entry);
/* NULL is fine. */
void store_queue_free_item(struct store_entries *entries, struct store_queue_item *item);
void store_queue_empty(struct store_entries *entries, struct store_entry *entry);

#endif
