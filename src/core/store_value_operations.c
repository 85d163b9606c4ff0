/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/store_value_operations.h"

void store_apply_set(const struct store_step *step) {
    struct store_entry *entry = store_step_find(step, step->request->key);
    entry = store_step_write(step, entry, step->request->value);
    if (entry != NULL) {
        store_step_wake_all(step, entry);
    }
}

void store_apply_append(const struct store_step *step) {
    struct slice key = step->request->key;
    struct slice value = step->request->value;
    struct store_entry *entry = store_step_find(step, key);
    size_t length = store_entry_value(entry).length + value.length;
    if (!store_step_admit(step, store_step_write_size(entry, key, length))) {
        return;
    }
    entry = store_step_obtain(step, entry, key);
    store_entry_append_value(step->entries, entry, value);
    store_step_wake_all(step, entry);
}

/* A missing key is told apart from an empty value: it only takes an empty expectation, and any
 * other gets its own expectation back, as compareAndSet of PyTorch's libuv server does. */
void store_apply_compare_set(const struct store_step *step) {
    const struct store_request *request = step->request;
    struct store_entry *entry = store_step_find(step, request->key);
    bool is_missing = entry == NULL || !entry->has_value;
    bool is_expected = is_missing ? request->expected.length == 0
                                  : slice_equals(store_entry_value(entry), request->expected);
    if (!is_expected) {
        store_step_reply_blob(step, is_missing ? request->expected : store_entry_value(entry));
        return;
    }
    entry = store_step_write(step, entry, request->value);
    if (entry != NULL) {
        store_step_reply_blob(step, store_entry_value(entry));
        store_step_wake_all(step, entry);
    }
}

void store_apply_get(const struct store_step *step) {
    store_step_reply_blob(step, store_entry_value(store_step_find(step, step->request->key)));
}

void store_apply_add(const struct store_step *step) {
    int64_t value = 0;
    struct store_entry *entry = store_step_count(step, step->request->number, 0, &value);
    if (entry != NULL) {
        store_step_reply_integer(step, value);
        store_step_wake_all(step, entry);
    }
}

void store_apply_delete(const struct store_step *step) {
    struct store_entry *entry = store_step_find(step, step->request->key);
    bool is_deleted = entry != NULL && entry->has_value;
    if (is_deleted) {
        store_entry_remove_value(step->entries, entry);
        store_entries_release(step->entries, entry);
    }
    store_step_reply_integer(step, is_deleted ? 1 : 0);
}

void store_apply_multi_get(const struct store_step *step) {
    const struct store_request *request = step->request;
    struct slice *blobs = store_effects_blobs(step->effects, request->count);
    for (size_t i = 0; i < request->count; i++) {
        blobs[i] = store_entry_value(store_step_find(step, request->keys[i]));
    }
    store_step_reply(step, &(struct store_reply){.kind = STORE_REPLY_BLOBS,
                               .list = {.items = blobs, .count = request->count}});
}

/* As admit_wait: the generous estimate first. */
static bool admit_multi_set(const struct store_step *step) {
    const struct store_request *request = step->request;
    size_t size = 0;
    for (size_t i = 0; i < request->count; i++) {
        size += store_step_write_size(NULL, request->keys[i], request->values[i].length);
    }
    if (store_entries_have_room(step->entries, size)) {
        return true;
    }
    size = 0;
    for (size_t i = 0; i < request->count; i++) {
        size += store_step_write_size(
            store_step_find(step, request->keys[i]), request->keys[i], request->values[i].length);
    }
    return store_step_admit(step, size);
}

void store_apply_multi_set(const struct store_step *step) {
    const struct store_request *request = step->request;
    if (!admit_multi_set(step)) {
        return;
    }
    for (size_t i = 0; i < request->count; i++) {
        struct slice key = request->keys[i];
        struct store_entry *entry = store_step_obtain(step, store_step_find(step, key), key);
        store_entry_set_value(step->entries, entry, request->values[i]);
        store_step_wake_all(step, entry);
    }
}

static bool collect_key(void *context, struct slice key, void *value) {
    struct slice **end = context;
    const struct store_entry *entry = value;
    if (entry->has_value) {
        *(*end)++ = key;
    }
    return true;
}

void store_apply_list_keys(const struct store_step *step) {
    size_t count = step->entries->value_count;
    struct slice *keys = store_effects_blobs(step->effects, count);
    struct slice *end = keys;
    table_each(step->entries->table, collect_key, &end);
    store_step_reply(step,
        &(struct store_reply){.kind = STORE_REPLY_KEYS, .list = {.items = keys, .count = count}});
}

void store_apply_count_keys(const struct store_step *step) {
    store_step_reply_integer(step, (int64_t)step->entries->value_count);
}
