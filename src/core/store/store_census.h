/* SPDX-License-Identifier: BSD-3-Clause */
/* Which keys take most of a store's memory. The answer is the longest beginning that the keys of at
 * least half of the memory have in common, or one key that alone takes half of it. So a user whose
 * store is full learns who fills it. It looks at every key, so it is asked only then. This is a
 * part of store_table; only store_table and its parts use it. */
#ifndef MUSTER_CORE_STORE_STORE_CENSUS_H
#define MUSTER_CORE_STORE_STORE_CENSUS_H

#include <stdbool.h>

#include "core/store/store_entries.h"

#define STORE_CENSUS_NAME_SIZE 65

struct store_census {
    /* Without the '/' that TCPStore's clients put before each key; bytes that are not printable
     * ASCII, and quotes, are '?'. Empty: the keys have nothing in common, or there are none. */
    char name[STORE_CENSUS_NAME_SIZE];
    bool is_whole_key; /* else the beginning of keys */
    int percent;       /* of the memory, about */
    size_t memory;     /* of the store when it was taken */
};

/* The census of what the store holds now, or held when it was about as full: a client that is
 * refused again and again costs little. It belongs to `entries`. */
const struct store_census *store_census_of(struct store_entries *entries);

#endif
