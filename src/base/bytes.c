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

/* Base64. */

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static uint8_t letter(uint32_t group, int position) {
    return (uint8_t)alphabet[group >> (18 - 6 * position) & 0x3f];
}

enum failure_code base64_encode(struct slice input, struct bytes *out) {
    if (input.length > SIZE_MAX / 4 * 3 - 3) {
        return FAILURE_LIMIT;
    }
    enum failure_code code = bytes_reserve(out, (input.length + 2) / 3 * 4);
    if (code != FAILURE_NONE) {
        return code;
    }
    for (size_t i = 0; i < input.length; i += 3) {
        size_t count = input.length - i < 3 ? input.length - i : 3;
        uint32_t group = 0;
        for (size_t j = 0; j < count; j++) {
            group |= (uint32_t)input.data[i + j] << (16 - 8 * j);
        }
        uint8_t *letters = out->data + out->length;
        letters[0] = letter(group, 0);
        letters[1] = letter(group, 1);
        letters[2] = count > 1 ? letter(group, 2) : '=';
        letters[3] = count > 2 ? letter(group, 3) : '=';
        out->length += 4;
    }
    return FAILURE_NONE;
}

/* The six bits that a character stands for; -1 for a character outside the alphabet. */
static int value_of(uint8_t character) {
    if (character >= 'A' && character <= 'Z') {
        return character - 'A';
    }
    if (character >= 'a' && character <= 'z') {
        return character - 'a' + 26;
    }
    if (character >= '0' && character <= '9') {
        return character - '0' + 52;
    }
    return character == '+' ? 62 : character == '/' ? 63 : -1;
}

/* Appends the bytes that the group's letters give so far. The room is already reserved. */
static void put_byte(struct bytes *out, uint32_t group, unsigned letters) {
    if (letters > 1) {
        out->data[out->length++] = (uint8_t)(group >> (8 - 2 * letters));
    }
}

enum failure_code base64_decode(struct slice input, struct bytes *out) {
    enum failure_code code = bytes_reserve(out, input.length / 4 * 3 + input.length % 4 * 3 / 4);
    if (code != FAILURE_NONE) {
        return code;
    }
    size_t length = out->length;
    uint32_t group = 0;
    unsigned letters = 0;
    unsigned pads = 0;
    bool is_ended = false; /* padding has completed a group */
    bool is_malformed = false;
    for (size_t i = 0; i < input.length && !is_malformed; i++) {
        int value = value_of(input.data[i]);
        if (value >= 0) {
            is_malformed = is_ended;
            group = group << 6 | (uint32_t)value;
            letters++;
            pads = 0;
            put_byte(out, group, letters);
            letters %= 4;
        } else if (input.data[i] == '=' && letters > 1) {
            pads++;
            is_ended = letters + pads >= 4;
        }
    }
    if (is_malformed || (letters != 0 && !is_ended)) {
        out->length = length;
        return FAILURE_MALFORMED;
    }
    return FAILURE_NONE;
}

/* Keyed hash. */

static uint64_t rotate(uint64_t value, int count) {
    return value << count | value >> (64 - count);
}

static void mix(uint64_t state[4], int rounds) {
    for (int i = 0; i < rounds; i++) {
        state[0] += state[1];
        state[2] += state[3];
        state[1] = rotate(state[1], 13) ^ state[0];
        state[3] = rotate(state[3], 16) ^ state[2];
        state[0] = rotate(state[0], 32);
        state[2] += state[1];
        state[0] += state[3];
        state[1] = rotate(state[1], 17) ^ state[2];
        state[3] = rotate(state[3], 21) ^ state[0];
        state[2] = rotate(state[2], 32);
    }
}

static void absorb(uint64_t state[4], uint64_t word) {
    state[3] ^= word;
    mix(state, 2);
    state[0] ^= word;
}

uint64_t keyed_hash(const uint64_t key[2], struct slice bytes) {
    uint64_t state[4] = {key[0] ^ UINT64_C(0x736f6d6570736575),
        key[1] ^ UINT64_C(0x646f72616e646f6d), key[0] ^ UINT64_C(0x6c7967656e657261),
        key[1] ^ UINT64_C(0x7465646279746573)};
    size_t whole = bytes.length / 8 * 8;
    for (size_t i = 0; i < whole; i += 8) {
        absorb(state, little_endian_load64(bytes.data + i));
    }
    uint64_t last = (uint64_t)bytes.length << 56;
    for (size_t i = whole; i < bytes.length; i++) {
        last |= (uint64_t)bytes.data[i] << (8 * (i - whole));
    }
    absorb(state, last);
    state[2] ^= 0xff;
    mix(state, 4);
    return state[0] ^ state[1] ^ state[2] ^ state[3];
}
