/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/memory.h"
#include "taken_memory.h"

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

/* Spare memory. */

#define LARGEST_PIECE ((size_t)1 << 20)

TEST(reserve_is_kept_until_it_is_given_up) {
    (void)spare_memory_give_up_reserve();
    assert_true(spare_memory_keep_reserve());
    assert_true(spare_memory_keep_reserve());
    assert_true(spare_memory_give_up_reserve());
    assert_false(spare_memory_give_up_reserve());
    assert_true(spare_memory_keep_reserve());
    assert_true(spare_memory_give_up_reserve());
}

TEST(more_than_there_can_be_is_not_there) {
    assert_true(spare_memory_is_there(100));
    assert_true(spare_memory_is_enough_for(100, 16));
    assert_true(spare_memory_has_room_for(100) && spare_memory_has_room_for(100000));
    assert_false(spare_memory_is_enough_for(SIZE_MAX / 2, 16)); /* which no size can hold */
    if (!process_has_memory_of_others()) {                      /* which end the process for it */
        assert_false(spare_memory_is_there(SIZE_MAX / 2));
        assert_false(spare_memory_has_room_for(SIZE_MAX / 2));
        assert_false(spare_memory_is_enough_for(SIZE_MAX / 2, 1));
    }
    (void)spare_memory_give_up_reserve();
}

TEST(reserve_is_what_is_left_when_there_is_nothing_else) {
    SKIP_WHERE_MEMORY_IS_ANOTHERS;
    assert_true(spare_memory_keep_reserve());
    struct rlimit before = taken_memory_begin();
    struct taken_memory *taken = taken_memory_take(NULL, LARGEST_PIECE);
    FREED char *allocated = memory_allocate(1000);
    bool was_given_up = !spare_memory_give_up_reserve();
    taken = taken_memory_take(taken, LARGEST_PIECE);
    bool can_be_kept = spare_memory_keep_reserve();
    taken_memory_end(taken, before);
    assert_non_null(allocated);
    assert_true(was_given_up);
    assert_false(can_be_kept);
    assert_true(spare_memory_keep_reserve());
    (void)spare_memory_give_up_reserve();
}

static void count(void *context) {
    ++*(int *)context;
}

TEST(last_reserve_is_given_up_last_and_each_is_told) {
    int told = 0;
    while (spare_memory_give_up_reserve()) {
    }
    assert_true(spare_memory_keep_reserve() && spare_memory_keep_last_reserve());
    spare_memory_watch(count, &told);
    assert_true(spare_memory_give_up_reserve());
    assert_true(spare_memory_has_last_reserve());
    assert_true(spare_memory_give_up_reserve());
    assert_false(spare_memory_has_last_reserve());
    assert_false(spare_memory_give_up_reserve());
    assert_int_equal(told, 2);
    spare_memory_watch(NULL, NULL);
    assert_true(spare_memory_keep_reserve());
    assert_true(spare_memory_give_up_reserve());
    assert_int_equal(told, 2);
}
