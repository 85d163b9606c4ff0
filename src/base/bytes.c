/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/bytes.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

struct slice slice_from_string(const char *string) {
    return (struct slice){(const uint8_t *)string, strlen(string)};
}

struct slice slice_from(struct slice whole, size_t start) {
    return (struct slice){whole.data + start, whole.length - start};
}

bool slice_equals(struct slice left, struct slice right) {
    return left.length == right.length &&
           (left.length == 0 || memcmp(left.data, right.data, left.length) == 0);
}

bool slice_starts_with(struct slice whole, struct slice start) {
    return whole.length >= start.length &&
           (start.length == 0 || memcmp(whole.data, start.data, start.length) == 0);
}

void bytes_init(struct bytes *bytes, size_t ceiling) {
    *bytes = (struct bytes){.ceiling = ceiling};
}

void bytes_clear(struct bytes *bytes) {
    free(bytes->data);
    *bytes = (struct bytes){.ceiling = bytes->ceiling};
}

/* Whether there is no memory to double a buffer that becomes this large. */
static bool is_missing(size_t capacity) {
    return !spare_memory_has_room_for(capacity > SIZE_MAX / 2 ? SIZE_MAX : 2 * capacity);
}

enum failure_code bytes_reserve(struct bytes *bytes, size_t length) {
    if (length > SIZE_MAX - bytes->length) {
        return FAILURE_LIMIT;
    }
    size_t needed = bytes->length + length;
    if (bytes->ceiling != 0 && needed > bytes->ceiling) {
        return FAILURE_LIMIT;
    }
    if (bytes->ceiling != 0 && is_missing(needed > bytes->capacity ? needed : 0)) {
        return FAILURE_LIMIT;
    }
    bytes->data = memory_reserve(bytes->data, &bytes->capacity, needed, 1);
    return FAILURE_NONE;
}

enum failure_code bytes_grow(struct bytes *bytes, size_t capacity) {
    if (bytes->ceiling != 0 && capacity > bytes->ceiling) {
        return FAILURE_LIMIT;
    }
    if (capacity > bytes->capacity) {
        if (is_missing(capacity)) {
            return FAILURE_LIMIT;
        }
        bytes->data = memory_reallocate(bytes->data, capacity);
        bytes->capacity = capacity;
    }
    return FAILURE_NONE;
}

enum failure_code bytes_append(struct bytes *bytes, const void *data, size_t length) {
    enum failure_code code = bytes_reserve(bytes, length);
    if (code == FAILURE_NONE && length > 0) {
        memcpy(bytes->data + bytes->length, data, length);
        bytes->length += length;
    }
    return code;
}

void bytes_consume(struct bytes *bytes, size_t length) {
    if (length == 0) {
        return;
    }
    if (length >= bytes->length) {
        bytes->length = 0;
        return;
    }
    memmove(bytes->data, bytes->data + length, bytes->length - length);
    bytes->length -= length;
}

struct slice bytes_slice(const struct bytes *bytes) {
    return (struct slice){bytes->data, bytes->length};
}
