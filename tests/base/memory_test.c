/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/memory.h"

TEST(fresh_memory_is_zeroed) {
    unsigned char *memory = memory_allocate(32);
    for (size_t i = 0; i < 32; i++) {
        assert_int_equal(memory[i], 0);
    }
    free(memory);
}

TEST(reserving_keeps_items_and_grows_at_least_twofold) {
    size_t capacity = 0;
    int *items = memory_reserve(NULL, &capacity, 1, sizeof *items);
    items[0] = 42;
    size_t before = capacity;
    items = memory_reserve(items, &capacity, before + 1, sizeof *items);
    assert_true(capacity >= 2 * before);
    assert_int_equal(items[0], 42);
    free(items);
}

TEST(duplicate_of_null_string_is_null) {
    assert_null(memory_duplicate_string(NULL));
}
