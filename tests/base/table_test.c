/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/memory.h"
#include "base/table.h"

static void replaced_and_removed_values_are_freed(void **state) {
    (void)state;
    struct table *table = table_new(free);
    table_put(table, slice_from_string("a"), memory_duplicate_string("1"));
    table_put(table, slice_from_string("a"), memory_duplicate_string("2"));
    assert_string_equal(table_get(table, slice_from_string("a")), "2");
    assert_int_equal(table_count(table), 1);
    assert_true(table_remove(table, slice_from_string("a")));
    assert_false(table_remove(table, slice_from_string("a")));
    table_put(table, slice_from_string("left"), memory_duplicate_string("over"));
    table_free(table);
}

static void keys_may_hold_any_byte_and_be_empty(void **state) {
    (void)state;
    struct table *table = table_new(NULL);
    char value;
    table_put(table, (struct slice){(const uint8_t *)"a\0b", 3}, &value);
    table_put(table, (struct slice){0}, &value);
    assert_ptr_equal(table_get(table, (struct slice){(const uint8_t *)"a\0b", 3}), &value);
    assert_ptr_equal(table_get(table, (struct slice){0}), &value);
    assert_null(table_get(table, slice_from_string("a")));
    table_free(table);
}

static bool collect(void *context, struct slice key, void *value) {
    (void)value;
    char *order = context;
    order[strlen(order)] = (char)key.data[0];
    return key.data[0] != 'b';
}

static void visits_follow_insertion_until_stopped(void **state) {
    (void)state;
    struct table *table = table_new(NULL);
    table_put(table, slice_from_string("c"), NULL);
    table_put(table, slice_from_string("a"), NULL);
    table_put(table, slice_from_string("b"), NULL);
    table_put(table, slice_from_string("d"), NULL);
    char order[8] = "";
    table_each(table, collect, order);
    assert_string_equal(order, "cab");
    table_free(table);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(replaced_and_removed_values_are_freed),
    cmocka_unit_test(keys_may_hold_any_byte_and_be_empty),
    cmocka_unit_test(visits_follow_insertion_until_stopped),
};

TEST_MAIN(tests)
