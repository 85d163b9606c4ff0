/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/store/store_step.h"

#include <stdio.h>

#include "base/text.h"
#include "core/store/store_census.h"
#include "core/store/store_counter.h"

void store_step_reply(const struct store_step *step, const struct store_reply *reply) {
    store_effects_reply(step->effects, step->connection, reply);
}

void store_step_reply_byte(const struct store_step *step, uint8_t byte) {
    store_step_reply(step, &(struct store_reply){.kind = STORE_REPLY_BYTE, .byte = byte});
}

void store_step_reply_integer(const struct store_step *step, int64_t integer) {
    store_step_reply(step, &(struct store_reply){.kind = STORE_REPLY_INTEGER, .integer = integer});
}

void store_step_reply_blob(const struct store_step *step, struct slice blob) {
    store_step_reply(step, &(struct store_reply){.kind = STORE_REPLY_BLOB, .blob = blob});
}

struct store_entry *store_step_find(const struct store_step *step, struct slice key) {
    return store_entries_find(step->entries, key);
}

void store_step_wake_all(const struct store_step *step, struct store_entry *entry) {
    store_waiters_wake_all(step->waiters, entry, step->effects);
}

/* The request needs `size` more bytes, which there are not. */
static void refuse(const struct store_step *step, size_t size) {
    struct text reason = {0};
    text_append_format(&reason,
        "%s: there is no room for %zu bytes more: ", store_operation_name(step->request->operation),
        size);
    store_census_describe(step->entries, &reason);
    (void)snprintf(step->effects->reason, sizeof step->effects->reason, "%s", text_string(&reason));
    text_clear(&reason);
    store_effects_close(step->effects, step->connection, step->effects->reason);
    step->effects->is_full = true;
}

bool store_step_admit(const struct store_step *step, size_t size) {
    const struct store_entries *entries = step->entries;
    if (store_entries_have_room(entries, size)) {
        return true;
    }
    refuse(step, size);
    return false;
}

/* How many wait for one key is not counted: not more than wait at all, and its own answer. */
bool store_step_admit_wake(const struct store_step *step, const struct store_entry *entry) {
    if (entry == NULL || entry->first_waiter == NULL) {
        return true;
    }
    size_t most = step->waiters->count + 1;
    if (store_effects_have_room(step->effects, most)) {
        return true;
    }
    refuse(step, most * sizeof *step->effects->items);
    return false;
}

size_t store_step_write_size(const struct store_entry *entry, struct slice key, size_t length) {
    return (entry == NULL ? store_entries_add_size(key) : 0) + store_entry_growth(entry, length);
}

struct store_entry *store_step_obtain(
    const struct store_step *step, struct store_entry *entry, struct slice key) {
    return entry != NULL ? entry : store_entries_add(step->entries, key);
}

struct store_entry *store_step_write(
    const struct store_step *step, struct store_entry *entry, struct slice value) {
    struct slice key = step->request->key;
    if (!store_step_admit_wake(step, entry) ||
        !store_step_admit(step, store_step_write_size(entry, key, value.length))) {
        return NULL;
    }
    entry = store_step_obtain(step, entry, key);
    store_entry_set_value(step->entries, entry, value);
    return entry;
}

struct store_entry *store_step_count(
    const struct store_step *step, int64_t delta, size_t extra, int64_t *out_value) {
    struct store_entry *entry = store_step_find(step, step->request->key);
    int64_t value = 0;
    if (entry != NULL && entry->has_value &&
        store_counter_parse(store_entry_value(entry), &value) != FAILURE_NONE) {
        (void)snprintf(step->effects->reason, sizeof step->effects->reason,
            "%s: the key's value is not a 64-bit decimal number",
            store_operation_name(step->request->operation));
        store_effects_close(step->effects, step->connection, step->effects->reason);
        return NULL;
    }
    value = (int64_t)((uint64_t)value + (uint64_t)delta); /* wraps as in PyTorch */
    uint8_t buffer[STORE_COUNTER_SIZE];
    struct slice text = store_counter_format(value, buffer);
    if (extra > 0 && !store_step_admit(step,
                         extra + store_step_write_size(entry, step->request->key, text.length))) {
        return NULL;
    }
    entry = store_step_write(step, entry, text);
    if (entry != NULL) {
        *out_value = value;
    }
    return entry;
}
