/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/memory.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/spare_memory.h"

static void *checked(void *pointer) {
    if (pointer == NULL) {
        abort();
    }
    return pointer;
}

void *memory_allocate(size_t size) {
    size_t least = size == 0 ? 1 : size;
    void *memory = calloc(1, least);
    if (memory == NULL && spare_memory_give_up_reserve()) {
        memory = calloc(1, least);
    }
    return checked(memory);
}

void *memory_reallocate(void *old, size_t size) {
    size_t least = size == 0 ? 1 : size;
    void *memory = realloc(old, least);
    if (memory == NULL && spare_memory_give_up_reserve()) {
        memory = realloc(old, least);
    }
    return checked(memory);
}

void *memory_duplicate(const void *source, size_t size) {
    void *copy = memory_allocate(size);
    if (size > 0) {
        memcpy(copy, source, size);
    }
    return copy;
}

char *memory_duplicate_string(const char *source) {
    return source == NULL ? NULL : memory_duplicate(source, strlen(source) + 1);
}

void *memory_reserve(void *items, size_t *capacity, size_t needed, size_t item_size) {
    if (needed <= *capacity) {
        return items;
    }
    size_t wanted = *capacity < 4 ? 4 : *capacity * 2;
    if (wanted < needed) {
        wanted = needed;
    }
    if (wanted > SIZE_MAX / item_size) {
        return checked(NULL);
    }
    items = memory_reallocate(items, wanted * item_size);
    *capacity = wanted;
    return items;
}
