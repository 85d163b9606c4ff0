/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/store/store_apply.h"

#include "base/memory.h"

/* Values and counters. */

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
    if (!store_step_admit_wake(step, entry) ||
        !store_step_admit(step, store_step_write_size(entry, key, length))) {
        return;
    }
    entry = store_step_obtain(step, entry, key);
    store_entry_append_value(step->entries, entry, value);
    store_step_wake_all(step, entry);
}

/* What a COMPARE_SET that has stored nothing is answered. Where the key is missing, that is the
 * expected value, as in compareAndSet of PyTorch's libuv server. */
static void reply_what_is_there(const struct store_step *step, const struct store_entry *entry) {
    bool is_missing = entry == NULL || !entry->has_value;
    store_step_reply_blob(step, is_missing ? step->request->expected : store_entry_value(entry));
}

/* A missing key differs from an empty value. Only an empty expected value matches it. */
void store_apply_compare_set(const struct store_step *step) {
    const struct store_request *request = step->request;
    struct store_entry *entry = store_step_find(step, request->key);
    bool is_missing = entry == NULL || !entry->has_value;
    bool is_expected = is_missing ? request->expected.length == 0
                                  : slice_equals(store_entry_value(entry), request->expected);
    if (!is_expected) {
        reply_what_is_there(step, entry);
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

/* Whether somebody waits for one of the keys is looked up only where all who wait were too many. */
static bool admit_multi_wake(const struct store_step *step) {
    const struct store_request *request = step->request;
    if (store_effects_have_room(step->effects, step->waiters->count)) {
        return true;
    }
    for (size_t i = 0; i < request->count; i++) {
        if (!store_step_admit_wake(step, store_step_find(step, request->keys[i]))) {
            return false;
        }
    }
    return true;
}

/* First uses an estimate that is too large but cheap, as admit_wait does. */
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
    if (!admit_multi_wake(step) || !admit_multi_set(step)) {
        return;
    }
    for (size_t i = 0; i < request->count; i++) {
        struct slice key = request->keys[i];
        struct store_entry *entry = store_step_obtain(step, store_step_find(step, key), key);
        store_entry_set_value(step->entries, entry, request->values[i]);
        store_step_wake_all(step, entry);
    }
}

struct collected_keys {
    struct slice *items;
    size_t count;
    struct slice hidden_prefix;
};

static bool collect_key(void *context, struct slice key, void *value) {
    struct collected_keys *keys = context;
    const struct store_entry *entry = value;
    bool is_hidden = keys->hidden_prefix.length > 0 && slice_starts_with(key, keys->hidden_prefix);
    if (entry->has_value && !is_hidden) {
        keys->items[keys->count++] = key;
    }
    return true;
}

void store_apply_list_keys(const struct store_step *step) {
    size_t count = step->entries->value_count;
    if (!spare_memory_is_enough_for(count, 2 * sizeof(struct slice))) { /* room may be doubled */
        store_effects_close(
            step->effects, step->connection, "there is no memory for the list of all keys");
        return;
    }
    struct collected_keys keys = {.items = store_effects_blobs(step->effects, count),
        .hidden_prefix = step->connection->hidden_prefix};
    table_each(step->entries->table, collect_key, &keys);
    store_step_reply(step, &(struct store_reply){.kind = STORE_REPLY_KEYS,
                               .list = {.items = keys.items, .count = keys.count}});
}

void store_apply_count_keys(const struct store_step *step) {
    store_step_reply_integer(step, (int64_t)step->entries->value_count);
}

/* Queues. */

void store_apply_queue_push(const struct store_step *step) {
    const struct store_request *request = step->request;
    struct store_entry *entry = store_step_find(step, request->key);
    size_t size = store_queue_item_size(request->value.length) +
                  (entry == NULL ? store_entries_add_size(request->key) : 0);
    if (!store_step_admit(step, size)) {
        return;
    }
    entry = store_step_obtain(step, entry, request->key);
    store_queue_push(step->entries, entry, request->value);
    store_waiters_wake_one(step->waiters, entry, step->effects);
    store_entries_release(step->entries, entry); /* who waited may have taken the item */
}

static int64_t queue_length(const struct store_entry *entry) {
    return entry == NULL ? 0 : (int64_t)entry->queue_length;
}

static void wait_for_item(const struct store_step *step) {
    struct slice key = step->request->key;
    size_t size = store_wait_size(1);
    size += store_step_find(step, key) == NULL ? store_entries_add_size(key) : 0;
    if (!store_step_admit(step, size)) {
        return;
    }
    store_waiters_drop(step->waiters, step->connection);
    struct store_wait *wait = store_wait_begin(step->waiters, step->connection, 1);
    wait->takes_item = true;
    store_wait_add(wait, store_step_obtain(step, store_step_find(step, key), key));
}

void store_apply_queue_pop(const struct store_step *step) {
    struct store_entry *entry = store_step_find(step, step->request->key);
    if (step->entries->is_owners && queue_length(entry) == 0) {
        wait_for_item(step);
        return;
    }
    store_waiters_answer_pop(step->waiters, entry, step->connection, step->effects);
    if (entry != NULL) {
        store_entries_release(step->entries, entry);
    }
}

void store_apply_queue_length(const struct store_step *step) {
    store_step_reply_integer(step, queue_length(store_step_find(step, step->request->key)));
}

/* Checking for keys, waiting for keys, and the barrier. */

void store_apply_barrier(const struct store_step *step) {
    int64_t arrived = 0;
    struct store_entry *entry = store_step_count(step, 1, store_wait_size(1), &arrived);
    if (entry == NULL) {
        return;
    }
    struct store_waiters *waiters = step->waiters;
    store_waiters_drop(waiters, step->connection);
    if (arrived >= step->request->number) {
        store_step_reply_byte(step, STORE_STOP_WAITING);
        store_step_wake_all(step, entry);
        return;
    }
    store_wait_add(store_wait_begin(waiters, step->connection, 1), entry);
}

void store_apply_check(const struct store_step *step) {
    const struct store_request *request = step->request;
    for (size_t i = 0; i < request->count; i++) {
        if (!store_entry_is_present(store_step_find(step, request->keys[i]))) {
            store_step_reply_byte(step, STORE_NOT_READY);
            return;
        }
    }
    store_step_reply_byte(step, STORE_READY);
}

/* Whether there is room for a wait for all these keys. The first estimate assumes that all keys are
 * missing and new, and needs no look at them. Only if there is no room for that, it looks at each
 * key. */
static bool admit_wait(const struct store_step *step) {
    const struct store_request *request = step->request;
    size_t size = store_wait_size(request->count);
    for (size_t i = 0; i < request->count; i++) {
        size += store_entries_add_size(request->keys[i]);
    }
    if (store_entries_have_room(step->entries, size)) {
        return true;
    }
    for (size_t i = 0; i < request->count; i++) {
        if (store_step_find(step, request->keys[i]) != NULL) {
            size -= store_entries_add_size(request->keys[i]);
        }
    }
    return store_step_admit(step, size);
}

void store_apply_wait(const struct store_step *step) {
    const struct store_request *request = step->request;
    if (!admit_wait(step)) {
        return;
    }
    store_waiters_drop(step->waiters, step->connection);
    struct store_wait *wait = NULL;
    for (size_t i = 0; i < request->count; i++) {
        struct store_entry *entry = store_step_find(step, request->keys[i]);
        if (store_entry_is_present(entry)) {
            continue;
        }
        if (wait == NULL) {
            wait = store_wait_begin(step->waiters, step->connection, request->count - i);
        }
        store_wait_add(wait, store_step_obtain(step, entry, request->keys[i]));
    }
    if (wait == NULL) {
        store_step_reply_byte(step, STORE_STOP_WAITING);
    }
}

void store_apply_cancel_wait(const struct store_step *step) {
    store_waiters_drop(step->waiters, step->connection);
    store_step_reply_byte(step, STORE_WAIT_CANCELLED);
}

/* What is refused. */

void store_apply_refused(const struct store_step *step, const char *reason) {
    const struct store_request *request = step->request;
    if (request->operation == STORE_COMPARE_SET) {
        reply_what_is_there(step, store_step_find(step, request->key));
    } else if (request->operation == STORE_DELETE) {
        store_step_reply_integer(step, 0);
    } else if (store_operation_reply_kind(request->operation) != STORE_REPLY_NONE) {
        store_effects_close(step->effects, step->connection, reason);
    }
}
