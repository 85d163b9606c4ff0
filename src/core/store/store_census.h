/* SPDX-License-Identifier: BSD-3-Clause */
/* Which keys take most of a store's memory. The answer is the longest beginning that the keys of at
 * least half of the memory have in common, or one key that alone takes half of it. So a user whose
 * store is full learns who fills it. It looks at every key, so it is asked only then. This is a
 * part of store_table; only store_table and its parts use it. */
#ifndef MUSTER_CORE_STORE_STORE_CENSUS_H
#define MUSTER_CORE_STORE_STORE_CENSUS_H

#include "base/text.h"
#include "core/store/store_entries.h"

/* Appends how much of the limit is used, and by whom: "14 keys take 3.7 MiB of the store's memory
 * limit of 4.0 MiB; about 98 % of what the keys take is for those that begin with 'leak/'". Names
 * are without the '/' that TCPStore's clients put before each key; bytes that are not printable
 * ASCII, and quotes, are '?'. While the store stays about as full, the keys are not looked at
 * again, so that a client that is refused again and again costs little. */
void store_census_describe(struct store_entries *entries, struct text *out);

#endif
