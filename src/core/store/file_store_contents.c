/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/store/file_store_contents.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/table.h"

struct held_value {
    size_t length;
    uint8_t data[];
};

/* About what malloc adds to each allocation. */
#define ALLOCATION_SIZE 16
#define ENTRY_SIZE (TABLE_ENTRY_SIZE + ALLOCATION_SIZE + sizeof(struct held_value))

struct file_store_contents {
    struct table *table;
    struct file_store_limits limits;
    size_t memory;
};

struct file_store_contents *file_store_contents_new(const struct file_store_limits *limits) {
    struct file_store_contents *contents = memory_allocate(sizeof *contents);
    contents->table = table_new(free);
    contents->limits = *limits;
    return contents;
}

void file_store_contents_free(struct file_store_contents *contents) {
    if (contents != NULL) {
        table_free(contents->table);
        free(contents);
    }
}

static bool is_within_limits(
    const struct file_store_contents *contents, const struct file_store_record *record) {
    return record->key.length <= contents->limits.key_bytes &&
           record->value.length <= contents->limits.value_bytes;
}

/* Whether there is room for `entries` more keys and `memory` more bytes. */
static bool can_grow(const struct file_store_contents *contents, size_t entries, size_t memory) {
    return entries <= contents->limits.entries - table_count(contents->table) &&
           memory <= contents->limits.memory_bytes - contents->memory;
}

bool file_store_contents_have_room(const struct file_store_contents *contents,
    const struct file_store_record *records, size_t count) {
    size_t memory = 0;
    size_t entries = 0;
    for (size_t i = 0; i < count; i++) {
        if (!is_within_limits(contents, &records[i])) {
            return false;
        }
        if (records[i].is_removal) {
            continue;
        }
        entries++;
        memory += ENTRY_SIZE + records[i].key.length + records[i].value.length;
    }
    return can_grow(contents, entries, memory);
}

static size_t held_size(const struct file_store_contents *contents, struct slice key) {
    const struct held_value *held = table_get(contents->table, key);
    return held == NULL ? 0 : ENTRY_SIZE + key.length + held->length;
}

enum failure_code file_store_contents_take(
    struct file_store_contents *contents, const struct file_store_record *record) {
    size_t old_size = held_size(contents, record->key);
    if (record->is_removal) {
        contents->memory -= old_size;
        (void)table_remove(contents->table, record->key);
        return FAILURE_NONE;
    }
    size_t size = ENTRY_SIZE + record->key.length + record->value.length;
    if (!is_within_limits(contents, record) ||
        !can_grow(contents, old_size == 0 ? 1 : 0, size > old_size ? size - old_size : 0)) {
        return FAILURE_LIMIT;
    }
    struct held_value *held = memory_allocate(sizeof *held + record->value.length);
    held->length = record->value.length;
    if (held->length > 0) {
        memcpy(held->data, record->value.data, held->length);
    }
    table_put(contents->table, record->key, held);
    contents->memory += size;
    contents->memory -= old_size;
    return FAILURE_NONE;
}

bool file_store_contents_find(
    const struct file_store_contents *contents, struct slice key, struct slice *out_value) {
    const struct held_value *held = table_get(contents->table, key);
    if (held != NULL && out_value != NULL) {
        *out_value = (struct slice){held->data, held->length};
    }
    return held != NULL;
}

size_t file_store_contents_count(const struct file_store_contents *contents) {
    return table_count(contents->table);
}

static bool list_key(void *context, struct slice key, void *value) {
    (void)value;
    struct slice **next = context;
    *(*next)++ = key;
    return true;
}

void file_store_contents_list(const struct file_store_contents *contents, struct slice *out_keys) {
    table_each(contents->table, list_key, &out_keys);
}
