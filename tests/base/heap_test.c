/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/heap.h"

#define COUNT 500

static void expect_order(struct heap *heap, size_t count) {
    int64_t last = INT64_MIN;
    for (size_t i = 0; i < count; i++) {
        struct heap_item *first = heap_first(heap);
        assert_non_null(first);
        assert_true(first->key >= last);
        last = first->key;
        heap_remove(heap, first);
    }
    assert_null(heap_first(heap));
}

static int64_t draw(uint32_t *state) {
    *state = *state * 1664525 + 1013904223;
    return (*state >> 8) % 300;
}

TEST(items_come_in_the_order_of_their_keys) {
    CLEARED_BY(heap_clear) struct heap heap = {0};
    struct heap_item items[COUNT];
    uint32_t seed = 1;
    assert_null(heap_first(&heap));
    for (size_t i = 0; i < COUNT; i++) {
        heap_insert(&heap, &items[i], draw(&seed));
    }
    expect_order(&heap, COUNT);
}

TEST(any_item_can_be_moved_or_taken_out) {
    CLEARED_BY(heap_clear) struct heap heap = {0};
    struct heap_item items[COUNT];
    uint32_t seed = 2;
    for (size_t i = 0; i < COUNT; i++) {
        heap_insert(&heap, &items[i], draw(&seed));
    }
    for (size_t i = 0; i < COUNT; i += 2) {
        heap_move(&heap, &items[i], draw(&seed));
    }
    for (size_t i = 0; i < COUNT; i += 5) {
        heap_remove(&heap, &items[i]);
    }
    for (size_t i = 0; i < heap.count; i++) {
        assert_int_equal(heap.items[i]->place, i);
    }
    expect_order(&heap, COUNT - COUNT / 5);
}

TEST(there_is_room_for_one_more) {
    static struct heap_item items[COUNT];
    CLEARED_BY(heap_clear) struct heap heap = {0};
    for (int i = 0; i < COUNT; i++) {
        assert_true(heap_has_room(&heap));
        heap_insert(&heap, &items[i], i);
    }
}
