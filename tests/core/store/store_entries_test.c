/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "core/store/store_step.h"

static int setup(void **state) {
    struct store_entries *entries = calloc(1, sizeof *entries);
    store_entries_init(entries, 10000);
    *state = entries;
    return 0;
}

static int teardown(void **state) {
    store_entries_clear(*state);
    free(*state);
    return 0;
}

static void what_was_announced_is_what_is_counted(void **state) {
    struct store_entries *entries = *state;
    struct slice key = slice_from_string("/k");
    size_t size = store_entries_add_size(key) + store_entry_growth(NULL, 100);
    struct store_entry *entry = store_entries_add(entries, key);
    uint8_t value[300] = {0};
    store_entry_set_value(entries, entry, (struct slice){value, 100});
    assert_int_equal(entries->memory, size);
    size += store_entry_growth(entry, 300);
    store_entry_set_value(entries, entry, (struct slice){value, 300});
    assert_int_equal(entries->memory, size);
    assert_int_equal(store_entry_growth(entry, 300), 0);
    size += store_queue_item_size(5);
    store_queue_push(entries, entry, (struct slice){value, 5});
    assert_int_equal(entries->memory, size);
    store_entry_remove_value(entries, entry);
    store_queue_empty(entries, entry);
    store_entries_release(entries, entry);
    assert_int_equal(entries->memory, 0);
}

static void an_entry_goes_when_it_holds_nothing(void **state) {
    struct store_entries *entries = *state;
    struct store_entry *entry = store_entries_add(entries, slice_from_string("/k"));
    store_entry_set_value(entries, entry, (struct slice){0});
    store_entries_release(entries, entry);
    assert_ptr_equal(store_entries_find(entries, slice_from_string("/k")), entry);
    assert_true(store_entry_is_present(entry));
    assert_int_equal(entries->value_count, 1);
    store_entry_remove_value(entries, entry);
    assert_false(store_entry_is_present(entry));
    store_entries_release(entries, entry);
    assert_null(store_entries_find(entries, slice_from_string("/k")));
    assert_int_equal(entries->value_count, 0);
}

static void sweeping_removes_only_empty_entries(void **state) {
    struct store_entries *entries = *state;
    (void)store_entries_add(entries, slice_from_string("/empty"));
    struct store_entry *kept = store_entries_add(entries, slice_from_string("/kept"));
    store_queue_push(entries, kept, slice_from_string("item"));
    store_entries_sweep(entries);
    assert_null(store_entries_find(entries, slice_from_string("/empty")));
    assert_non_null(store_entries_find(entries, slice_from_string("/kept")));
    assert_int_equal(entries->memory,
        store_entries_add_size(slice_from_string("/kept")) + store_queue_item_size(4));
}

static void appending_leaves_room_for_more_unless_memory_is_short(void **state) {
    struct store_entries *entries = *state;
    static const uint8_t piece[4000];
    struct store_entry *entry = store_entries_add(entries, slice_from_string("/ap"));
    store_entry_append_value(entries, entry, (struct slice){piece, 1000});
    assert_int_equal(entry->value_capacity, 1500);
    store_entry_append_value(entries, entry, (struct slice){piece, 4000});
    assert_int_equal(entry->value_capacity, 7500);
    store_entry_append_value(entries, entry, (struct slice){piece, 4000});
    assert_int_equal(entry->value_capacity, 9000);
    assert_int_equal(store_entry_value(entry).length, 9000);
    assert_true(entries->memory <= entries->memory_limit);
}

static void room_is_never_more_than_the_limit(void **state) {
    struct store_entries *entries = *state;
    assert_true(store_entries_have_room(entries, 10000));
    assert_false(store_entries_have_room(entries, 10001));
    assert_false(store_entries_have_room(entries, SIZE_MAX));
    (void)store_entries_add(entries, slice_from_string("/k"));
    assert_false(store_entries_have_room(entries, 10000));
}

#define entries_test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

static const struct CMUnitTest tests[] = {
    entries_test(what_was_announced_is_what_is_counted),
    entries_test(an_entry_goes_when_it_holds_nothing),
    entries_test(sweeping_removes_only_empty_entries),
    entries_test(appending_leaves_room_for_more_unless_memory_is_short),
    entries_test(room_is_never_more_than_the_limit),
};

UNIT_TESTS(tests)
