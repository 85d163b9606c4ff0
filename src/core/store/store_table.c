/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/store/store_table.h"

#include <stdlib.h>

#include "base/memory.h"
#include "core/store/store_limits.h"
#include "core/store/store_step.h"

struct store_table {
    struct store_entries entries;
    struct store_waiters waiters;
    struct slice own_prefix; /* borrowed; empty: there are no own keys */
};

struct store_table *store_table_new(const struct store_limits *limits) {
    struct store_table *table = memory_allocate(sizeof *table);
    store_entries_init(&table->entries, limits->memory_bytes);
    table->waiters.entries = &table->entries;
    return table;
}

/* The arguments of a renewal, for each entry. */
struct renewal {
    struct store_table *table;
    struct slice kept_prefix;
    struct store_effects *effects;
};

static bool forget_entry(void *context, struct slice key, void *value) {
    const struct renewal *renewal = context;
    struct store_table *table = renewal->table;
    struct store_entry *entry = value;
    if (!slice_starts_with(key, renewal->kept_prefix) || renewal->kept_prefix.length == 0) {
        store_waiters_expel(&table->waiters, entry,
            "the store was renewed while this client waited", renewal->effects);
        store_entry_remove_value(&table->entries, entry);
        store_queue_empty(&table->entries, entry);
    }
    return true;
}

/* `effects` is NULL when the connections are not to be closed. */
static void renew(
    struct store_table *table, struct slice kept_prefix, struct store_effects *effects) {
    struct renewal renewal = {table, kept_prefix, effects};
    store_queue_free_taken(&table->entries);
    table_each(table->entries.table, forget_entry, &renewal);
    store_entries_sweep(&table->entries);
}

void store_table_renew(
    struct store_table *table, struct slice kept_prefix, struct store_effects *effects) {
    renew(table, kept_prefix, effects);
}

void store_table_free(struct store_table *table) {
    if (table == NULL) {
        return;
    }
    renew(table, (struct slice){0}, NULL);
    store_entries_clear(&table->entries);
    free(table);
}

void store_table_disconnect(struct store_table *table, struct store_connection *connection) {
    store_waiters_drop(&table->waiters, connection);
}

void store_table_reserve_memory(struct store_table *table, size_t taken_bytes) {
    table->entries.reserved = taken_bytes;
}

void store_table_own(struct store_table *table, struct slice own_prefix) {
    if (own_prefix.length > 0) {
        table->own_prefix = own_prefix;
        table->entries.owner_reserve = store_memory_reserve(table->entries.memory_limit);
    }
}

void store_table_describe(struct store_table *table, struct text *out) {
    store_census_describe(&table->entries, out);
}

/* Of a request with several keys the first one counts: a client puts the same prefix before all. */
static bool is_owners(const struct store_table *table, const struct store_request *request) {
    struct slice key = request->count > 0 ? request->keys[0] : request->key;
    return table->own_prefix.length > 0 && slice_starts_with(key, table->own_prefix);
}

size_t store_table_memory(const struct store_table *table) {
    return table->entries.memory;
}

size_t store_table_count(const struct store_table *table) {
    return table->entries.value_count;
}

size_t store_table_waiting(const struct store_table *table) {
    return table->waiters.count;
}

static void apply_nothing(const struct store_step *step) {
    (void)step;
}

static void apply_ping(const struct store_step *step) {
    const struct store_reply reply = {.kind = STORE_REPLY_NONCE, .nonce = step->request->nonce};
    store_step_reply(step, &reply);
}

static void (*const operations[STORE_OPERATION_COUNT])(const struct store_step *step) = {
    [STORE_VALIDATE] = apply_nothing, /* the decoder has checked it */
    [STORE_SET] = store_apply_set,
    [STORE_COMPARE_SET] = store_apply_compare_set,
    [STORE_GET] = store_apply_get,
    [STORE_ADD] = store_apply_add,
    [STORE_CHECK] = store_apply_check,
    [STORE_WAIT] = store_apply_wait,
    [STORE_COUNT_KEYS] = store_apply_count_keys,
    [STORE_DELETE] = store_apply_delete,
    [STORE_APPEND] = store_apply_append,
    [STORE_MULTI_GET] = store_apply_multi_get,
    [STORE_MULTI_SET] = store_apply_multi_set,
    [STORE_CANCEL_WAIT] = store_apply_cancel_wait,
    [STORE_PING] = apply_ping,
    [STORE_QUEUE_PUSH] = store_apply_queue_push,
    [STORE_QUEUE_POP] = store_apply_queue_pop,
    [STORE_QUEUE_LENGTH] = store_apply_queue_length,
    [STORE_LIST_KEYS] = store_apply_list_keys,
    [STORE_BARRIER] = store_apply_barrier,
};

static struct store_step step_of(struct store_table *table, struct store_connection *connection,
    const struct store_request *request, struct store_effects *effects) {
    return (struct store_step){
        .entries = &table->entries,
        .waiters = &table->waiters,
        .connection = connection,
        .request = request,
        .effects = effects,
    };
}

void store_table_refuse(struct store_table *table, struct store_connection *connection,
    const struct store_request *request, const char *reason, struct store_effects *effects) {
    const struct store_step step = step_of(table, connection, request, effects);
    store_queue_free_taken(&table->entries);
    store_waiters_give_way(&table->waiters, connection, effects);
    store_apply_refused(&step, reason);
}

void store_table_apply(struct store_table *table, struct store_connection *connection,
    const struct store_request *request, struct store_effects *effects) {
    const struct store_step step = step_of(table, connection, request, effects);
    store_queue_free_taken(&table->entries);
    store_waiters_give_way(&table->waiters, connection, effects);
    table->entries.is_owners = is_owners(table, request);
    operations[request->operation](&step);
}

static void empty_queue(struct store_table *table, struct slice key) {
    struct store_entry *entry = store_entries_find(&table->entries, key);
    if (entry != NULL) {
        store_queue_empty(&table->entries, entry);
        store_entries_release(&table->entries, entry);
    }
}

void store_table_tell(struct store_table *table, struct slice key, struct slice value,
    struct store_effects *effects) {
    const struct store_request push = {.operation = STORE_QUEUE_PUSH, .key = key, .value = value};
    const struct store_step step = step_of(table, NULL, &push, effects);
    store_queue_free_taken(&table->entries);
    empty_queue(table, key);
    table->entries.is_owners = is_owners(table, &push);
    size_t size = store_queue_item_size(value.length) + store_entries_add_size(key);
    if (value.length > 0 && store_entries_have_room(&table->entries, size)) {
        store_apply_queue_push(&step);
    }
}
