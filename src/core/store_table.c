/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/store_table.h"

#include <stdlib.h>

#include "base/memory.h"

struct store_table {
    struct store_limits limits;
};

struct store_table *store_table_new(const struct store_limits *limits) {
    struct store_table *table = memory_allocate(sizeof *table);
    table->limits = *limits;
    return table;
}

void store_table_free(struct store_table *table) {
    free(table);
}

void store_table_apply(struct store_table *table, struct store_connection *connection,
    const struct store_request *request, struct store_effects *effects) {
    (void)table;
    (void)request;
    store_effects_close(effects, connection, "not served yet");
}

void store_table_disconnect(struct store_table *table, struct store_connection *connection) {
    (void)table;
    connection->wait = NULL;
}

void store_table_renew(
    struct store_table *table, struct slice kept_prefix, struct store_effects *effects) {
    (void)table;
    (void)kept_prefix;
    (void)effects;
}

size_t store_table_memory(const struct store_table *table) {
    (void)table;
    return 0;
}

size_t store_table_count(const struct store_table *table) {
    (void)table;
    return 0;
}

size_t store_table_waiting(const struct store_table *table) {
    (void)table;
    return 0;
}
