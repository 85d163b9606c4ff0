/* SPDX-License-Identifier: BSD-3-Clause */
/* A map from nodes to numbers. A node is found at once, however many there are: a record of
 * thousands of nodes is not searched once for each of them. */
#ifndef MUSTER_CORE_RENDEZVOUS_NODE_TABLE_H
#define MUSTER_CORE_RENDEZVOUS_NODE_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/table.h"
#include "core/rendezvous/node_identity.h"

#define NODE_TABLE_ABSENT SIZE_MAX

/* A zeroed struct is valid and empty. */
struct node_table {
    struct table *numbers;
};

void node_table_clear(struct node_table *table);

/* Copies the identity. A number that the node already has is replaced; it is less than
 * NODE_TABLE_ABSENT. */
void node_table_put(struct node_table *table, const struct node_identity *identity, size_t number);
/* Nothing happens when the node is not in the table. */
void node_table_remove(struct node_table *table, const struct node_identity *identity);
/* The number of the node, or NODE_TABLE_ABSENT. */
size_t node_table_find(const struct node_table *table, const struct node_identity *identity);

#endif
