/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/spare_memory.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

/* Of the process, as its memory is. */
static _Atomic(void *) reserve;

bool spare_memory_keep_reserve(void) {
    if (atomic_load(&reserve) != NULL) {
        return true;
    }
    void *nothing = NULL;
    void *taken = malloc(SPARE_MEMORY_RESERVE);
    if (taken != NULL && !atomic_compare_exchange_strong(&reserve, &nothing, taken)) {
        free(taken); /* another thread was quicker */
    }
    return taken != NULL;
}

bool spare_memory_give_up_reserve(void) {
    void *taken = atomic_exchange(&reserve, NULL);
    free(taken);
    return taken != NULL;
}

bool spare_memory_is_there(size_t bytes) {
    void *volatile memory = malloc(bytes); /* else the compiler may leave both calls out */
    free(memory);
    return memory != NULL;
}

bool spare_memory_is_enough_for(size_t bytes, size_t factor) {
    if (!spare_memory_keep_reserve() || bytes > SIZE_MAX / factor) {
        return false;
    }
    return bytes * factor <= SPARE_MEMORY_RESERVE / 2 || spare_memory_is_there(bytes * factor);
}
