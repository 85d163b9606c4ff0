/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/rendezvous/node_table.h"

#include <stddef.h>
#include <string.h>

/* The numbers, then the address: the shortest bytes that identify a node. */
struct node_key {
    int64_t numbers[2];
    struct node_process process;
    char address[NODE_ADDRESS_SIZE];
};

static struct slice make_key(const struct node_identity *identity, struct node_key *key) {
    size_t length = strlen(identity->address);
    key->numbers[0] = identity->pid;
    key->numbers[1] = identity->local_id;
    key->process = identity->process;
    memcpy(key->address, identity->address, length);
    return (struct slice){(const uint8_t *)key, offsetof(struct node_key, address) + length};
}

void node_table_clear(struct node_table *table) {
    table_free(table->numbers);
    table->numbers = NULL;
}

void node_table_put(struct node_table *table, const struct node_identity *identity, size_t number) {
    struct node_key key;
    if (table->numbers == NULL) {
        table->numbers = table_new(NULL);
    }
    /* plus one: the table's value for an absent key is NULL */
    (void)table_put(table->numbers, make_key(identity, &key), (void *)(uintptr_t)(number + 1));
}

void node_table_remove(struct node_table *table, const struct node_identity *identity) {
    struct node_key key;
    if (table->numbers != NULL) {
        (void)table_remove(table->numbers, make_key(identity, &key));
    }
}

size_t node_table_find(const struct node_table *table, const struct node_identity *identity) {
    struct node_key key;
    return table->numbers == NULL
               ? NODE_TABLE_ABSENT
               : (size_t)(uintptr_t)table_get(table->numbers, make_key(identity, &key)) - 1;
}
