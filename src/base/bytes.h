/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes: a borrowed view (slice) and an owned buffer that grows up to a ceiling. The ceiling is
 * checked before memory is touched, so a peer that names a huge length costs nothing. */
#ifndef MUSTER_BASE_BYTES_H
#define MUSTER_BASE_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/failure.h"

/* Borrowed bytes: whoever made it owns the memory. `data` may be NULL when `length` is 0. */
struct slice {
    const uint8_t *data;
    size_t length;
};

struct slice slice_from_string(const char *string);
bool slice_equals(struct slice left, struct slice right);
bool slice_starts_with(struct slice whole, struct slice start);
/* Orders like memcmp, shorter first on a common prefix. */
int slice_compare(struct slice left, struct slice right);

/* Owned bytes. A zeroed struct is a valid empty buffer without a ceiling. */
struct bytes {
    uint8_t *data;
    size_t length;
    size_t capacity;
    size_t ceiling; /* 0: none */
};

void bytes_init(struct bytes *bytes, size_t ceiling);
/* Frees the memory; the buffer is empty and usable again, with its ceiling. */
void bytes_clear(struct bytes *bytes);
/* FAILURE_LIMIT when the ceiling would be passed; then nothing has changed. */
__attribute__((warn_unused_result)) enum failure_code bytes_append(
    struct bytes *bytes, const void *data, size_t length);
/* Room for `length` more bytes at data + length, or FAILURE_LIMIT. */
__attribute__((warn_unused_result)) enum failure_code bytes_reserve(
    struct bytes *bytes, size_t length);
/* Drops the first `length` bytes. */
void bytes_consume(struct bytes *bytes, size_t length);
struct slice bytes_slice(const struct bytes *bytes);

#endif
