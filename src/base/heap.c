/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/heap.h"

#include <stdlib.h>

#include "base/memory.h"

void heap_clear(struct heap *heap) {
    free(heap->items);
    *heap = (struct heap){0};
}

static void put(struct heap *heap, size_t place, struct heap_item *item) {
    heap->items[place] = item;
    item->place = place;
}

static void rise(struct heap *heap, struct heap_item *item) {
    size_t place = item->place;
    while (place > 0 && heap->items[(place - 1) / 2]->key > item->key) {
        put(heap, place, heap->items[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    put(heap, place, item);
}

static void sink(struct heap *heap, struct heap_item *item) {
    size_t place = item->place;
    for (;;) {
        size_t child = 2 * place + 1;
        if (child + 1 < heap->count && heap->items[child + 1]->key < heap->items[child]->key) {
            child++;
        }
        if (child >= heap->count || heap->items[child]->key >= item->key) {
            break;
        }
        put(heap, place, heap->items[child]);
        place = child;
    }
    put(heap, place, item);
}

bool heap_has_room(const struct heap *heap) {
    return heap->count < heap->capacity ||
           spare_memory_has_room_for(2 * heap->capacity * sizeof *heap->items);
}

void heap_insert(struct heap *heap, struct heap_item *item, int64_t key) {
    heap->items =
        memory_reserve(heap->items, &heap->capacity, heap->count + 1, sizeof *heap->items);
    item->key = key;
    put(heap, heap->count++, item);
    rise(heap, item);
}

void heap_move(struct heap *heap, struct heap_item *item, int64_t key) {
    item->key = key;
    rise(heap, item);
    sink(heap, item);
}

void heap_remove(struct heap *heap, struct heap_item *item) {
    struct heap_item *last = heap->items[--heap->count];
    if (last != item) {
        put(heap, item->place, last);
        heap_move(heap, last, last->key);
    }
}

struct heap_item *heap_first(const struct heap *heap) {
    return heap->count == 0 ? NULL : heap->items[0];
}
