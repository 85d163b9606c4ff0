/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/memory.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* More than what one step takes in small pieces. */
#define SPARE_MEMORY_RESERVE ((size_t)1 << 20)

/* More than the end of an agent takes. It is larger, because the C library gives each small piece a
 * page where none of its arenas can grow. */
#define SPARE_MEMORY_LAST_RESERVE ((size_t)4 << 20)

/* What the reserve has for each of several pieces of a step. */
#define SMALL_BYTES ((size_t)65536)

/* Of the process, as its memory is. */
static _Atomic(void *) reserve;
static _Atomic(void *) last_reserve;
static void (*_Atomic watcher)(void *context);
static _Atomic(void *) watcher_context;

static bool keep(_Atomic(void *) *place, size_t size) {
    if (atomic_load(place) != NULL) {
        return true;
    }
    void *nothing = NULL;
    void *taken = malloc(size);
    if (taken != NULL && !atomic_compare_exchange_strong(place, &nothing, taken)) {
        free(taken); /* another thread was quicker */
    }
    return taken != NULL;
}

bool spare_memory_keep_reserve(void) {
    return keep(&reserve, SPARE_MEMORY_RESERVE);
}

bool spare_memory_keep_last_reserve(void) {
    return keep(&last_reserve, SPARE_MEMORY_LAST_RESERVE);
}

bool spare_memory_has_last_reserve(void) {
    return atomic_load(&last_reserve) != NULL;
}

bool spare_memory_give_up_reserve(void) {
    void *taken = atomic_exchange(&reserve, NULL);
    void (*given_up)(void *context) = atomic_load(&watcher);
    if (taken == NULL) {
        taken = atomic_exchange(&last_reserve, NULL);
    }
    free(taken);
    if (taken != NULL && given_up != NULL) {
        given_up(atomic_load(&watcher_context));
    }
    return taken != NULL;
}

void spare_memory_watch(void (*given_up)(void *context), void *context) {
    atomic_store(&watcher, NULL);
    atomic_store(&watcher_context, context);
    atomic_store(&watcher, given_up);
}

bool spare_memory_is_there(size_t bytes) {
    void *volatile memory = malloc(bytes); /* else the compiler may leave both calls out */
    free(memory);
    return memory != NULL;
}

bool spare_memory_has_room_for(size_t bytes) {
    return bytes <= SMALL_BYTES || spare_memory_is_there(bytes);
}

bool spare_memory_is_enough_for(size_t bytes, size_t factor) {
    if (!spare_memory_keep_reserve() || bytes > SIZE_MAX / factor) {
        return false;
    }
    return bytes * factor <= SPARE_MEMORY_RESERVE / 2 || spare_memory_is_there(bytes * factor);
}

/* Memory. */

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
