/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/store/store_seeds.h"

#include <stdlib.h>

#include "base/memory.h"

void store_seeds_add(struct store_seeds *seeds, const char *key, struct slice value) {
    seeds->items =
        memory_reserve(seeds->items, &seeds->capacity, seeds->count + 1, sizeof *seeds->items);
    struct store_seed *seed = &seeds->items[seeds->count++];
    *seed = (struct store_seed){.key = memory_duplicate_string(key)};
    (void)!bytes_append(&seed->value, value.data, value.length); /* without a ceiling it succeeds */
}

void store_seeds_clear(struct store_seeds *seeds) {
    for (size_t i = 0; i < seeds->count; i++) {
        free(seeds->items[i].key);
        bytes_clear(&seeds->items[i].value);
    }
    free(seeds->items);
    *seeds = (struct store_seeds){0};
}
