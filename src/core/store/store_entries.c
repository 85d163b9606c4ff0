/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/store/store_entries.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

#define ALLOCATION_SIZE 16   /* about what malloc adds to each allocation */
#define LEAST_CAPACITY 24    /* every counter fits, so ADD never reallocates */
#define SHRINK_CAPACITY 4096 /* larger buffers are freed when they are mostly unused */
#define SHRINK_FACTOR 4

void store_entries_init(struct store_entries *entries, size_t memory_limit) {
    *entries = (struct store_entries){.table = table_new(free), .memory_limit = memory_limit};
}

static bool empty_entry(void *context, struct slice key, void *value) {
    (void)key;
    struct store_entries *entries = context;
    struct store_entry *entry = value;
    store_entry_remove_value(entries, entry);
    store_queue_empty(entries, entry);
    return true;
}

void store_entries_clear(struct store_entries *entries) {
    table_each(entries->table, empty_entry, entries);
    table_free(entries->table);
    free(entries->census);
    *entries = (struct store_entries){.memory_limit = entries->memory_limit};
}

bool store_entries_have_room(const struct store_entries *entries, size_t size) {
    size_t limit = entries->memory_limit - (entries->is_owners ? 0 : entries->owner_reserve);
    size_t left = entries->reserved < limit ? limit - entries->reserved : 0;
    return size <= left && entries->memory <= left - size && spare_memory_is_enough_for(size, 2);
}

struct store_entry *store_entries_find(const struct store_entries *entries, struct slice key) {
    return table_get(entries->table, key);
}

size_t store_entries_add_size(struct slice key) {
    return sizeof(struct store_entry) + ALLOCATION_SIZE + TABLE_ENTRY_SIZE + key.length;
}

struct store_entry *store_entries_add(struct store_entries *entries, struct slice key) {
    struct store_entry *entry = memory_allocate(sizeof *entry);
    entry->key = table_put(entries->table, key, entry);
    entries->memory += store_entries_add_size(key);
    return entry;
}

static bool holds_nothing(const struct store_entry *entry) {
    return !entry->has_value && entry->queue_front == NULL && entry->first_waiter == NULL;
}

void store_entries_release(struct store_entries *entries, struct store_entry *entry) {
    if (holds_nothing(entry)) {
        entries->memory -= store_entries_add_size(entry->key);
        (void)table_remove(entries->table, entry->key);
    }
}

static bool sweep_entry(void *context, struct slice key, void *value) {
    struct store_entries *entries = context;
    bool is_empty = holds_nothing(value);
    if (is_empty) {
        entries->memory -= store_entries_add_size(key);
    }
    return is_empty;
}

void store_entries_sweep(struct store_entries *entries) {
    table_remove_if(entries->table, sweep_entry, entries);
}

bool store_entry_is_present(const struct store_entry *entry) {
    return entry != NULL && (entry->has_value || entry->queue_front != NULL);
}

struct slice store_entry_value(const struct store_entry *entry) {
    return entry != NULL && entry->has_value ? (struct slice){entry->value, entry->value_length}
                                             : (struct slice){0};
}

static size_t capacity_for(size_t length) {
    return length < LEAST_CAPACITY ? LEAST_CAPACITY : length;
}

size_t store_entry_growth(const struct store_entry *entry, size_t length) {
    size_t held = entry == NULL ? 0 : entry->value_capacity;
    size_t wanted = capacity_for(length);
    if (wanted <= held) {
        return 0;
    }
    return wanted - held + (held == 0 ? ALLOCATION_SIZE : 0);
}

static void free_value(struct store_entries *entries, struct store_entry *entry) {
    if (entry->value_capacity > 0) {
        entries->memory -= entry->value_capacity + ALLOCATION_SIZE;
        free(entry->value);
        entry->value = NULL;
        entry->value_capacity = 0;
    }
}

static void resize_value(
    struct store_entries *entries, struct store_entry *entry, size_t capacity) {
    entries->memory -= entry->value_capacity == 0 ? 0 : entry->value_capacity + ALLOCATION_SIZE;
    entries->memory += capacity + ALLOCATION_SIZE;
    entry->value = memory_reallocate(entry->value, capacity);
    entry->value_capacity = capacity;
}

static void mark_present(struct store_entries *entries, struct store_entry *entry) {
    if (!entry->has_value) {
        entry->has_value = true;
        entries->value_count++;
    }
}

static bool is_oversized(const struct store_entry *entry, size_t length) {
    return entry->value_capacity > SHRINK_CAPACITY &&
           length < entry->value_capacity / SHRINK_FACTOR;
}

void store_entry_set_value(
    struct store_entries *entries, struct store_entry *entry, struct slice value) {
    size_t capacity = capacity_for(value.length);
    if (capacity > entry->value_capacity || is_oversized(entry, value.length)) {
        free_value(entries, entry); /* before resizing, so that the old bytes are not copied */
        resize_value(entries, entry, capacity);
    }
    if (value.length > 0) {
        memcpy(entry->value, value.data, value.length);
    }
    entry->value_length = value.length;
    mark_present(entries, entry);
}

void store_entry_append_value(
    struct store_entries *entries, struct store_entry *entry, struct slice value) {
    size_t length = entry->value_length + value.length;
    if (capacity_for(length) > entry->value_capacity) {
        size_t generous = length + length / 2;
        bool has_room = store_entries_have_room(entries, store_entry_growth(entry, generous));
        resize_value(entries, entry, capacity_for(has_room ? generous : length));
    }
    if (value.length > 0) {
        memcpy(entry->value + entry->value_length, value.data, value.length);
    }
    entry->value_length = length;
    mark_present(entries, entry);
}

void store_entry_remove_value(struct store_entries *entries, struct store_entry *entry) {
    free_value(entries, entry);
    entry->value_length = 0;
    entries->value_count -= entry->has_value ? 1 : 0;
    entry->has_value = false;
}

size_t store_queue_item_size(size_t length) {
    return sizeof(struct store_queue_item) + ALLOCATION_SIZE + length;
}

void store_queue_push(
    struct store_entries *entries, struct store_entry *entry, struct slice value) {
    struct store_queue_item *item = memory_allocate(sizeof *item + value.length);
    item->length = value.length;
    if (value.length > 0) {
        memcpy(item->data, value.data, value.length);
    }
    if (entry->queue_back == NULL) {
        entry->queue_front = item;
    } else {
        entry->queue_back->next = item;
    }
    entry->queue_back = item;
    entry->queue_length++;
    entry->queue_bytes += store_queue_item_size(value.length);
    entries->memory += store_queue_item_size(value.length);
}

static struct store_queue_item *remove_front(struct store_entry *entry) {
    struct store_queue_item *item = entry->queue_front;
    entry->queue_front = item->next;
    entry->queue_back = item->next == NULL ? NULL : entry->queue_back;
    entry->queue_length--;
    entry->queue_bytes -= store_queue_item_size(item->length);
    return item;
}

static void free_item(struct store_entries *entries, struct store_queue_item *item) {
    entries->memory -= store_queue_item_size(item->length);
    free(item);
}

struct slice store_queue_take(struct store_entries *entries, struct store_entry *entry) {
    store_queue_free_taken(entries);
    entries->taken = remove_front(entry);
    return (struct slice){entries->taken->data, entries->taken->length};
}

void store_queue_free_taken(struct store_entries *entries) {
    if (entries->taken != NULL) {
        free_item(entries, entries->taken);
        entries->taken = NULL;
    }
}

void store_queue_empty(struct store_entries *entries, struct store_entry *entry) {
    while (entry->queue_front != NULL) {
        free_item(entries, remove_front(entry));
    }
}
