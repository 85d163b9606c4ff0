/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/rendezvous/rendezvous_state.h"
#include "rendezvous_fixture.h"

static void a_node_is_found_by_all_of_its_name(void **state) {
    (void)state;
    struct node_table table = {0};
    struct node_identity node = torch_node("a");
    assert_true(node_table_find(&table, &node) == NODE_TABLE_ABSENT);
    node_table_put(&table, &node, 0);
    assert_true(node_table_find(&table, &node) == 0);
    struct node_identity others[] = {node, node, torch_node("aa")};
    others[0].pid++;
    others[1].local_id++;
    for (size_t i = 0; i < 3; i++) {
        assert_true(node_table_find(&table, &others[i]) == NODE_TABLE_ABSENT);
        node_table_put(&table, &others[i], 10 + i);
    }
    assert_true(node_table_find(&table, &node) == 0);
    assert_true(node_table_find(&table, &others[2]) == 12);
    node_table_put(&table, &node, 7);
    assert_true(node_table_find(&table, &node) == 7);
    node_table_remove(&table, &node);
    node_table_remove(&table, &node);
    assert_true(node_table_find(&table, &node) == NODE_TABLE_ABSENT);
    assert_true(node_table_find(&table, &others[2]) == 12);
    node_table_clear(&table);
    node_table_remove(&table, &node);
    assert_true(node_table_find(&table, &node) == NODE_TABLE_ABSENT);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_node_is_found_by_all_of_its_name),
};

UNIT_TESTS(tests)
