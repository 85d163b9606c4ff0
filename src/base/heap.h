/* SPDX-License-Identifier: BSD-3-Clause */
/* A binary heap of items of the caller's, the one with the smallest key first. Each item knows its
 * place, so that any of them can be taken out or moved. Equal keys come in no order. */
#ifndef MUSTER_BASE_HEAP_H
#define MUSTER_BASE_HEAP_H

#include <stddef.h>
#include <stdint.h>

/* The first member of what is held; belongs to the heap while it is in one. */
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

void heap_insert(struct heap *heap, struct heap_item *item, int64_t key);
/* The item must be in this heap; so must that of heap_move, which gives it another key. */
void heap_remove(struct heap *heap, struct heap_item *item);
void heap_move(struct heap *heap, struct heap_item *item, int64_t key);

/* NULL when the heap is empty. */
struct heap_item *heap_first(const struct heap *heap);

#endif
