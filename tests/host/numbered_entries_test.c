/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "host/numbered_entries.h"
#include "temporary_tree.h"

static void only_prefix_and_number_count_in_order(void **state) {
    (void)state;
    struct temporary_tree tree;
    temporary_tree_init(&tree);
    static const char *const names[] = {"nvidia10", "nvidia2", "nvidia0", "nvidiactl", "nvidia",
        "nvidia-uvm", "nvidia1x", "xnvidia3", "nvidia99999999", "4"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        temporary_tree_write(&tree, names[i], "");
    }
    struct numbered_entries entries = numbered_entries_list(tree.root, "nvidia");
    assert_int_equal(entries.count, 3);
    assert_int_equal(entries.numbers[0], 0);
    assert_int_equal(entries.numbers[1], 2);
    assert_int_equal(entries.numbers[2], 10);
    numbered_entries_clear(&entries);
    entries = numbered_entries_list(tree.root, "");
    assert_int_equal(entries.count, 1);
    assert_int_equal(entries.numbers[0], 4);
    numbered_entries_clear(&entries);
    temporary_tree_clear(&tree);
}

static void absent_directory_has_none(void **state) {
    (void)state;
    struct numbered_entries entries = numbered_entries_list("/no/such/directory", "x");
    assert_int_equal(entries.count, 0);
    numbered_entries_clear(&entries);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(only_prefix_and_number_count_in_order),
    cmocka_unit_test(absent_directory_has_none),
};

TEST_MAIN(tests)
