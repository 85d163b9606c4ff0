/* SPDX-License-Identifier: BSD-3-Clause */
/* Keys with which a store begins to serve, so that its first client finds what an earlier store of
 * the same job held. Values only; they are copied, so that they can go to the store's thread. */
#ifndef MUSTER_HOST_STORE_STORE_SEEDS_H
#define MUSTER_HOST_STORE_STORE_SEEDS_H

#include <stddef.h>

#include "base/bytes.h"

struct store_seed {
    char *key; /* raw, with its leading '/' */
    struct bytes value;
};

/* A zeroed struct is a valid empty list. */
struct store_seeds {
    struct store_seed *items;
    size_t count;
    size_t capacity;
};

/* Copies key and value. Of seeds with the same key the last one holds. */
void store_seeds_add(struct store_seeds *seeds, const char *key, struct slice value);
void store_seeds_clear(struct store_seeds *seeds);

#endif
