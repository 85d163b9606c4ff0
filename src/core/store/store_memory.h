/* SPDX-License-Identifier: BSD-3-Clause */
/* How much memory a store may take: what the user has asked for, or a part of what there is. Values
 * only; host/machine/memory_limit knows how much there is. */
#ifndef MUSTER_CORE_STORE_STORE_MEMORY_H
#define MUSTER_CORE_STORE_STORE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "core/store/store_limits.h"

/* Without a wish a store takes this part of the memory, but not more than the limit of
 * STORE_LIMITS_DEFAULT. Workers need most of the memory for themselves. */
#define STORE_MEMORY_DEFAULT_PERCENT 25
#define STORE_MEMORY_LEAST ((uint64_t)1 << 20)

/* What the user has asked for. A zeroed struct: nothing. */
struct store_memory {
    uint64_t bytes;
    int percent; /* of the memory that there is; when `bytes` is 0 */
};

/* The default limits, for the memory that was asked for. `available_bytes` is the memory that this
 * process may use. The limits of one request and of one reply are lowered where the memory is
 * small, since each client may have one. */
struct store_limits store_memory_limits(const struct store_memory *asked, uint64_t available_bytes);

/* The part of the limit that only the agents' own keys may use (store_table_own). */
size_t store_memory_reserve(size_t memory_bytes);

#endif
