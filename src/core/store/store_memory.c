/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/store/store_memory.h"

#define LEAST_REQUEST_BYTES ((size_t)16 << 20) /* a value of the default limit fits, twice */
#define RESERVE_PART 16
#define LARGEST_RESERVE ((size_t)64 << 20)

static uint64_t part_of(uint64_t bytes, int percent) {
    return bytes / 100 * (uint64_t)percent + bytes % 100 * (uint64_t)percent / 100;
}

static size_t at_most(size_t value, size_t ceiling) {
    return value < ceiling ? value : ceiling;
}

struct store_limits store_memory_limits(
    const struct store_memory *asked, uint64_t available_bytes) {
    struct store_limits limits = STORE_LIMITS_DEFAULT;
    uint64_t bytes = asked->bytes;
    if (bytes == 0 && asked->percent > 0) {
        bytes = part_of(available_bytes, asked->percent);
    } else if (bytes == 0) {
        bytes = part_of(available_bytes, STORE_MEMORY_DEFAULT_PERCENT);
        bytes = bytes < limits.memory_bytes ? bytes : limits.memory_bytes;
    }
    bytes = bytes < STORE_MEMORY_LEAST ? STORE_MEMORY_LEAST : bytes;
    limits.memory_bytes = bytes < SIZE_MAX ? (size_t)bytes : SIZE_MAX;
    size_t quarter = limits.memory_bytes / 4;
    size_t request = quarter > LEAST_REQUEST_BYTES ? quarter : LEAST_REQUEST_BYTES;
    limits.request_bytes = at_most(limits.request_bytes, request);
    limits.queued_reply_bytes = at_most(limits.queued_reply_bytes, request);
    return limits;
}

size_t store_memory_reserve(size_t memory_bytes) {
    return at_most(memory_bytes / RESERVE_PART, LARGEST_RESERVE);
}
