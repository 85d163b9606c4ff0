/* SPDX-License-Identifier: BSD-3-Clause */
/* A map from bytes to pointers that keeps insertion order. The only file that knows the hash table
 * library. */
#ifndef MUSTER_BASE_TABLE_H
#define MUSTER_BASE_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"

struct table;

/* `free_value` is called for each value that is replaced, removed or left at table_free; NULL for
 * none. */
struct table *table_new(void (*free_value)(void *value));
void table_free(struct table *table);

/* What an entry costs in memory besides its key and value, about; for those who keep accounts. */
#define TABLE_ENTRY_SIZE 112

/* Copies the key, takes the value; an old value under that key is freed. The result is the table's
 * copy of the key, which stays where it is until the entry is removed. */
struct slice table_put(struct table *table, struct slice key, void *value);
/* The value, or NULL. */
void *table_get(const struct table *table, struct slice key);
/* Removes and frees; false when the key was absent. */
bool table_remove(struct table *table, struct slice key);
/* Removes and frees every entry that `is_unwanted` says so of. */
void table_remove_if(struct table *table,
    bool (*is_unwanted)(void *context, struct slice key, void *value), void *context);
size_t table_count(const struct table *table);

/* Calls `visit` for each entry in insertion order until it returns false. The table must not change
 * meanwhile. */
void table_each(const struct table *table,
    bool (*visit)(void *context, struct slice key, void *value), void *context);

#endif
