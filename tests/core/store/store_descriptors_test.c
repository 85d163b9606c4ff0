/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/store/store_limits.h"

static void each_node_needs_a_descriptor_for_each_connection(void **state) {
    (void)state;
    assert_int_equal(store_descriptors_needed(0, 3, 0), STORE_DESCRIPTORS_OWN);
    assert_int_equal(store_descriptors_needed(1000, 3, 50), STORE_DESCRIPTORS_OWN + 3050);
}

static void a_limit_serves_as_many_nodes_as_need_it(void **state) {
    (void)state;
    for (uint64_t nodes = 0; nodes < 100; nodes++) {
        uint64_t limit = store_descriptors_needed(nodes, 3, 16);
        assert_int_equal(store_descriptors_nodes(limit, 3, 16), nodes);
        assert_int_equal(store_descriptors_nodes(limit + 2, 3, 16), nodes);
    }
}

static void a_limit_below_what_the_agent_itself_needs_serves_nobody(void **state) {
    (void)state;
    assert_int_equal(store_descriptors_nodes(0, 3, 16), 0);
    assert_int_equal(store_descriptors_nodes(STORE_DESCRIPTORS_OWN, 3, 16), 0);
}

static void what_the_workers_take_is_kept_from_clients(void **state) {
    (void)state;
    for (uint64_t workers = 1; workers < 20; workers++) { /* with 13 open for each, seen */
        assert_true(store_descriptors_for_workers(workers) >= 13 * workers + 32);
    }
    assert_int_equal(store_descriptors_kept(100, 1024), 100);
    assert_int_equal(store_descriptors_kept(100, UINT64_MAX), 100);
}

static void clients_are_served_under_any_limit(void **state) {
    (void)state;
    for (uint64_t limit = 0; limit < 2000; limit++) {
        assert_true(store_descriptors_kept(UINT32_MAX, limit) <= limit / 2);
        assert_true(store_descriptors_unproven(UINT32_MAX, limit) <= limit / 4);
    }
}

static void all_nodes_may_prove_themselves_at_once_even_from_one_address(void **state) {
    (void)state;
    for (uint64_t nodes = 1; nodes < 3000; nodes *= 2) {
        assert_true(
            store_descriptors_unproven(nodes, UINT64_MAX) / 2 >= nodes * STORE_DESCRIPTORS_OF_NODE);
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_node_needs_a_descriptor_for_each_connection),
    cmocka_unit_test(a_limit_serves_as_many_nodes_as_need_it),
    cmocka_unit_test(a_limit_below_what_the_agent_itself_needs_serves_nobody),
    cmocka_unit_test(what_the_workers_take_is_kept_from_clients),
    cmocka_unit_test(clients_are_served_under_any_limit),
    cmocka_unit_test(all_nodes_may_prove_themselves_at_once_even_from_one_address),
};

UNIT_TESTS(tests)
