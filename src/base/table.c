/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"

/* uthash counts in unsigned int and converts implicitly, so its macros are excluded from our
 * warnings. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wshadow"
#define uthash_malloc(size) memory_allocate(size)
#define uthash_fatal(message) abort() /* unreachable: memory_allocate never returns NULL */
#include <uthash.h>

struct entry {
    UT_hash_handle hh;
    void *value;
    size_t key_length;
    uint8_t key[];
};

struct table {
    struct entry *entries;
    void (*free_value)(void *value);
};

/* The hash library passes every key to memcmp, which needs a valid pointer even for zero bytes. */
static struct slice with_pointer(struct slice key) {
    return key.data == NULL ? slice_from_string("") : key;
}

/* Keys come from other machines, which must not be able to choose keys that collide. So the hash
 * depends on addresses of this process, which no other machine knows. */
static unsigned hash_of(const struct table *table, struct slice key) {
    const uint64_t secret[2] = {(uintptr_t)table, (uintptr_t)&table_free};
    return (unsigned)keyed_hash(secret, key);
}

static struct entry *find(const struct table *table, struct slice key) {
    struct entry *found = NULL;
    key = with_pointer(key);
    unsigned hash = hash_of(table, key);
    HASH_FIND_BYHASHVALUE(hh, table->entries, key.data, key.length, hash, found);
    return found;
}

static void free_entry_value(const struct table *table, struct entry *entry) {
    if (table->free_value != NULL) {
        table->free_value(entry->value);
    }
}

struct table *table_new(void (*free_value)(void *value)) {
    struct table *table = memory_allocate(sizeof *table);
    table->free_value = free_value;
    return table;
}

void table_free(struct table *table) {
    if (table == NULL) {
        return;
    }
    struct entry *entry = table->entries;
    HASH_CLEAR(hh, table->entries);
    while (entry != NULL) {
        struct entry *next = entry->hh.next;
        free_entry_value(table, entry);
        free(entry);
        entry = next;
    }
    free(table);
}

/* Whether the next entry would have the list of buckets doubled, for which there is no memory. */
static bool cannot_grow(const UT_hash_table *head, unsigned hash) {
    const UT_hash_bucket *bucket = &head->buckets[hash & (head->num_buckets - 1)];
    size_t bytes = 2 * (size_t)head->num_buckets * sizeof *bucket;
    bool is_due = bucket->count + 1 >= (bucket->expand_mult + 1) * HASH_BKT_CAPACITY_THRESH;
    return is_due && !head->noexpand && !spare_memory_has_room_for(bytes);
}

/* The list of buckets is the only piece of a table that becomes large. Without memory for it the
 * buckets hold more, and it is asked for again with the next entry. */
static void add_entry(struct table *table, struct entry *entry, unsigned hash) {
    UT_hash_table *head = table->entries == NULL ? NULL : table->entries->hh.tbl;
    bool is_put_off = head != NULL && cannot_grow(head, hash);
    if (is_put_off) {
        head->noexpand = 1;
    }
    HASH_ADD_KEYPTR_BYHASHVALUE(hh, table->entries, entry->key, entry->key_length, hash, entry);
    if (is_put_off) {
        head->noexpand = 0;
    }
}

struct slice table_put(struct table *table, struct slice key, void *value) {
    struct entry *entry = NULL;
    key = with_pointer(key);
    unsigned hash = hash_of(table, key);
    HASH_FIND_BYHASHVALUE(hh, table->entries, key.data, key.length, hash, entry);
    if (entry != NULL) {
        free_entry_value(table, entry);
        entry->value = value;
        return (struct slice){entry->key, entry->key_length};
    }
    entry = memory_allocate(sizeof *entry + key.length);
    entry->key_length = key.length;
    memcpy(entry->key, key.data, key.length);
    entry->value = value;
    add_entry(table, entry, hash);
    return (struct slice){entry->key, entry->key_length};
}

void *table_get(const struct table *table, struct slice key) {
    struct entry *entry = find(table, key);
    return entry == NULL ? NULL : entry->value;
}

static void remove_entry(struct table *table, struct entry *entry) {
    HASH_DEL(table->entries, entry);
    free_entry_value(table, entry);
    free(entry);
}

bool table_remove(struct table *table, struct slice key) {
    struct entry *entry = find(table, key);
    if (entry == NULL) {
        return false;
    }
    remove_entry(table, entry);
    return true;
}

void table_remove_if(struct table *table,
    bool (*is_unwanted)(void *context, struct slice key, void *value), void *context) {
    struct entry *next = NULL;
    for (struct entry *entry = table->entries; entry != NULL; entry = next) {
        next = entry->hh.next;
        if (is_unwanted(context, (struct slice){entry->key, entry->key_length}, entry->value)) {
            remove_entry(table, entry);
        }
    }
}

size_t table_count(const struct table *table) {
    return HASH_COUNT(table->entries);
}

void table_each(const struct table *table,
    bool (*visit)(void *context, struct slice key, void *value), void *context) {
    for (struct entry *entry = table->entries; entry != NULL; entry = entry->hh.next) {
        if (!visit(context, (struct slice){entry->key, entry->key_length}, entry->value)) {
            return;
        }
    }
}
#pragma GCC diagnostic pop
