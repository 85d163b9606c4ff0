/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/store_wait_operations.h"

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

/* Whether there is room for waiting for all those keys: at first as if all were missing and new,
 * which needs no look at them, and only if that is too much, key by key. */
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
