/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/keyed_hash.h"

#include "base/bytes.h"

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
