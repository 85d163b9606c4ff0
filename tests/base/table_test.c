/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/memory.h"
#include "base/table.h"

TEST(replaced_and_removed_values_are_freed) {
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

TEST(keys_may_hold_any_byte_and_be_empty) {
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

TEST(visits_follow_insertion_until_stopped) {
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

TEST(the_copy_of_a_key_stays_while_the_table_grows) {
    struct table *table = table_new(NULL);
    char name[] = "key";
    struct slice copy = table_put(table, slice_from_string(name), NULL);
    name[0] = 'x';
    for (uint32_t i = 0; i < 1000; i++) {
        (void)table_put(table, (struct slice){(const uint8_t *)&i, sizeof i}, NULL);
    }
    assert_true(slice_equals(copy, slice_from_string("key")));
    assert_ptr_equal(table_put(table, copy, NULL).data, copy.data);
    assert_int_equal(table_count(table), 1001);
    table_free(table);
}

static bool is_long(void *context, struct slice key, void *value) {
    (void)value;
    *(size_t *)context += 1;
    return key.length > 1;
}

TEST(unwanted_entries_are_removed_in_one_pass) {
    struct table *table = table_new(free);
    const char *const keys[] = {"aa", "b", "cc", "dd", "e"};
    for (size_t i = 0; i < 5; i++) {
        table_put(table, slice_from_string(keys[i]), memory_duplicate_string("value"));
    }
    size_t asked = 0;
    table_remove_if(table, is_long, &asked);
    assert_int_equal(asked, 5);
    assert_int_equal(table_count(table), 2);
    assert_non_null(table_get(table, slice_from_string("b")));
    assert_non_null(table_get(table, slice_from_string("e")));
    assert_null(table_get(table, slice_from_string("aa")));
    table_free(table);
}

/* The hash of the table's library without a key, for 12 bytes at a time. */
static void mix_without_key(uint32_t state[3], const uint32_t block[3]) {
    static const int shifts[] = {13, -8, 13, 12, -16, 5, 3, -10, 15};
    for (int i = 0; i < 3; i++) {
        state[i] += block[i];
    }
    for (int i = 0; i < 9; i++) {
        uint32_t last = state[(i + 2) % 3];
        uint32_t moved = shifts[i] < 0 ? last << -shifts[i] : last >> shifts[i];
        state[i % 3] = (state[i % 3] - state[(i + 1) % 3] - last) ^ moved;
    }
}

/* Whoever knows the hash chooses the second half of each key so that the state after it is always
 * the same. A table that walks over all earlier keys at each insertion needs many minutes for these
 * keys. */
TEST(keys_chosen_to_collide_cost_no_more_than_others) {
    struct table *table = table_new(NULL);
    for (uint32_t i = 1; i <= 200000; i++) {
        uint32_t key[6] = {i};
        uint32_t mixed[3] = {0x9e3779b9, 0x9e3779b9, 0xfeedbeef};
        mix_without_key(mixed, key);
        for (int j = 0; j < 3; j++) {
            key[3 + j] = 0U - mixed[j];
        }
        struct slice bytes = {(const uint8_t *)key, sizeof key};
        (void)table_put(table, bytes, (void *)(uintptr_t)i);
        assert_int_equal((uintptr_t)table_get(table, bytes), i);
    }
    assert_int_equal(table_count(table), 200000);
    table_free(table);
}
