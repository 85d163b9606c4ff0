/* SPDX-License-Identifier: BSD-3-Clause */
/* A map from bytes to pointers that keeps insertion order. No other file uses the hash table
 * library. An entry takes memory for itself only: a table of very many goes on with slower look-ups
 * where there is no memory for what makes them fast. */
#ifndef MUSTER_BASE_TABLE_H
#define MUSTER_BASE_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"

struct table;

/* `free_value` is called for each value that is replaced, removed, or still there at table_free.
 * NULL: values are not freed. */
struct table *table_new(void (*free_value)(void *value));
void table_free(struct table *table);

/* The approximate memory of an entry besides its key and value, for callers that count memory. */
#define TABLE_ENTRY_SIZE 112

/* Copies the key and takes ownership of the value. An old value under that key is freed. The result
 * is the table's copy of the key; it stays at its address until the entry is removed. */
struct slice table_put(struct table *table, struct slice key, void *value);
/* The value, or NULL. */
void *table_get(const struct table *table, struct slice key);
/* Removes the entry and frees its value; false when the key is absent. */
bool table_remove(struct table *table, struct slice key);
/* Removes and frees every entry for which `is_unwanted` returns true. */
void table_remove_if(struct table *table,
    bool (*is_unwanted)(void *context, struct slice key, void *value), void *context);
size_t table_count(const struct table *table);

/* Calls `visit` for each entry in insertion order until it returns false. The table must not change
 * during the walk. */
void table_each(const struct table *table,
    bool (*visit)(void *context, struct slice key, void *value), void *context);

#endif
