/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/memory.h"

static void fresh_memory_is_zeroed(void **state) {
    (void)state;
    unsigned char *memory = memory_allocate(32);
    for (size_t i = 0; i < 32; i++) {
        assert_int_equal(memory[i], 0);
    }
    free(memory);
}

static void reserving_keeps_items_and_grows_at_least_twofold(void **state) {
    (void)state;
    size_t capacity = 0;
    int *items = memory_reserve(NULL, &capacity, 1, sizeof *items);
    items[0] = 42;
    size_t before = capacity;
    items = memory_reserve(items, &capacity, before + 1, sizeof *items);
    assert_true(capacity >= 2 * before);
    assert_int_equal(items[0], 42);
    free(items);
}

static void duplicate_of_null_string_is_null(void **state) {
    (void)state;
    assert_null(memory_duplicate_string(NULL));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(fresh_memory_is_zeroed),
    cmocka_unit_test(reserving_keeps_items_and_grows_at_least_twofold),
    cmocka_unit_test(duplicate_of_null_string_is_null),
};

UNIT_TESTS(tests)
