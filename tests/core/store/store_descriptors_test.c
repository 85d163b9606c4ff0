/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/store/store_descriptors.h"

static void each_node_needs_a_descriptor_for_each_connection(void **state) {
    (void)state;
    assert_int_equal(store_descriptors_needed(0, 3), STORE_DESCRIPTORS_OWN);
    assert_int_equal(store_descriptors_needed(1000, 3), STORE_DESCRIPTORS_OWN + 3000);
}

static void a_limit_serves_as_many_nodes_as_need_it(void **state) {
    (void)state;
    for (uint64_t nodes = 0; nodes < 100; nodes++) {
        uint64_t limit = store_descriptors_needed(nodes, 3);
        assert_int_equal(store_descriptors_nodes(limit, 3), nodes);
        assert_int_equal(store_descriptors_nodes(limit + 2, 3), nodes);
    }
}

static void a_limit_below_what_the_agent_itself_needs_serves_nobody(void **state) {
    (void)state;
    assert_int_equal(store_descriptors_nodes(0, 3), 0);
    assert_int_equal(store_descriptors_nodes(STORE_DESCRIPTORS_OWN, 3), 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_node_needs_a_descriptor_for_each_connection),
    cmocka_unit_test(a_limit_serves_as_many_nodes_as_need_it),
    cmocka_unit_test(a_limit_below_what_the_agent_itself_needs_serves_nobody),
};

UNIT_TESTS(tests)
