/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes: a borrowed view (slice) and an owned buffer that grows up to a ceiling. The ceiling is
 * checked before memory is touched, so a peer that names a huge length costs nothing. */
#ifndef MUSTER_BASE_BYTES_H
#define MUSTER_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/failure.h"

/* Borrowed bytes: the memory belongs to its owner, never to the slice. `data` may be NULL when
 * `length` is 0. */
struct slice {
    const uint8_t *data;
    size_t length;
};

struct slice slice_from_string(const char *string);
/* The part of `whole` behind its first `start` bytes. `start` must not exceed the length. */
struct slice slice_from(struct slice whole, size_t start);
bool slice_equals(struct slice left, struct slice right);
bool slice_starts_with(struct slice whole, struct slice start);

/* Owned bytes. A zeroed struct is a valid empty buffer without a ceiling. */
struct bytes {
    uint8_t *data;
    size_t length;
    size_t capacity;
    size_t ceiling; /* 0: no ceiling */
};

void bytes_init(struct bytes *bytes, size_t ceiling);
/* Frees the memory; the buffer is empty and usable again, with its ceiling. */
void bytes_clear(struct bytes *bytes);
/* Appends a copy of the bytes. FAILURE_LIMIT when the buffer would grow beyond its ceiling, or when
 * it has a ceiling, becomes large, and there is no memory; the buffer is then unchanged. */
__attribute__((warn_unused_result)) enum failure_code bytes_append(
    struct bytes *bytes, const void *data, size_t length);
/* Makes room for `length` more bytes at data + length. FAILURE_LIMIT when the ceiling does not
 * allow it. */
__attribute__((warn_unused_result)) enum failure_code bytes_reserve(
    struct bytes *bytes, size_t length);
/* Gives the buffer exactly this capacity when it has less. FAILURE_LIMIT as above, also without a
 * ceiling. */
__attribute__((warn_unused_result)) enum failure_code bytes_grow(
    struct bytes *bytes, size_t capacity);
/* Drops the first `length` bytes. */
void bytes_consume(struct bytes *bytes, size_t length);
struct slice bytes_slice(const struct bytes *bytes);

#endif
