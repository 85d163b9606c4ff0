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

/* Integers as TCPStore sends them: least significant byte first, whatever the machine's order. */

static inline uint32_t little_endian_load32(const uint8_t *data) {
    return (uint32_t)data[0] | (uint32_t)data[1] << 8 | (uint32_t)data[2] << 16 |
           (uint32_t)data[3] << 24;
}

static inline uint64_t little_endian_load64(const uint8_t *data) {
    return little_endian_load32(data) | (uint64_t)little_endian_load32(data + 4) << 32;
}

static inline void little_endian_store32(uint8_t *data, uint32_t value) {
    for (int i = 0; i < 4; i++) {
        data[i] = (uint8_t)(value >> (8 * i));
    }
}

static inline void little_endian_store64(uint8_t *data, uint64_t value) {
    little_endian_store32(data, (uint32_t)value);
    little_endian_store32(data + 4, (uint32_t)(value >> 32));
}

/* Base64 with the standard alphabet and padding, as Python's base64.b64encode writes it and its
 * b64decode reads it by default. */

/* Appends the text. FAILURE_LIMIT at the buffer's ceiling, which leaves the buffer as it was. */
__attribute__((warn_unused_result)) enum failure_code base64_encode(
    struct slice input, struct bytes *out);

/* Appends the bytes. Characters outside the alphabet are skipped. FAILURE_MALFORMED when padding is
 * missing, when the last group has only one character, and for characters of the alphabet after the
 * padding (Python's versions disagree about those). FAILURE_LIMIT when a text of this length could
 * give more bytes than the buffer's ceiling allows. On failure the buffer is as it was. */
__attribute__((warn_unused_result)) enum failure_code base64_decode(
    struct slice input, struct bytes *out);

/* SipHash-2-4 (Aumasson, Bernstein 2012): a hash that nobody who does not know the key can make
 * collide. It keeps tables fast whose keys come from other machines. */

uint64_t keyed_hash(const uint64_t key[2], struct slice bytes);

#endif
