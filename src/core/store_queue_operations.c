/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/store_queue_operations.h"

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
}

static int64_t queue_length(const struct store_entry *entry) {
    return entry == NULL ? 0 : (int64_t)entry->queue_length;
}

void store_apply_queue_pop(const struct store_step *step) {
    struct store_entry *entry = store_step_find(step, step->request->key);
    struct store_reply answer = {.kind = STORE_REPLY_POP};
    answer.pop.length = queue_length(entry);
    answer.pop.front = (struct slice){0};
    if (answer.pop.length > 0) {
        struct store_queue_item *item = store_queue_pop(entry);
        *step->popped = item;
        answer.pop.front = (struct slice){item->data, item->length};
        store_entries_release(step->entries, entry);
    }
    store_step_reply(step, &answer);
}

void store_apply_queue_length(const struct store_step *step) {
    store_step_reply_integer(step, queue_length(store_step_find(step, step->request->key)));
}
