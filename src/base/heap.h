/* SPDX-License-Identifier: BSD-3-Clause */
/* A binary heap of items that belong to the caller; the item with the smallest key comes first.
 * Each item knows its place in the heap, so that any item can be removed or moved. Items with equal
 * keys come in no fixed order. */
#ifndef MUSTER_BASE_HEAP_H
#define MUSTER_BASE_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first member of each struct that is put into a heap. The heap owns its fields while the item
 * is inside. */
struct heap_item {
    int64_t key;
    size_t place;
};

/* A zeroed struct is an empty heap. */
struct heap {
    struct heap_item **items;
    size_t count;
    size_t capacity;
};

/* Frees the heap's own memory, not the items. */
void heap_clear(struct heap *heap);

/* Whether there is memory for one item more: the heap's own is in one piece. */
bool heap_has_room(const struct heap *heap);

void heap_insert(struct heap *heap, struct heap_item *item, int64_t key);
/* The item must be in this heap, for heap_remove and for heap_move. heap_move gives it another
 * key. */
void heap_remove(struct heap *heap, struct heap_item *item);
void heap_move(struct heap *heap, struct heap_item *item, int64_t key);

/* NULL when the heap is empty. */
struct heap_item *heap_first(const struct heap *heap);

#endif
