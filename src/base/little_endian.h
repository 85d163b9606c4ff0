/* SPDX-License-Identifier: BSD-3-Clause */
/* Integers as TCPStore sends them: least significant byte first, whatever the machine's order. */
#ifndef MUSTER_BASE_LITTLE_ENDIAN_H
#define MUSTER_BASE_LITTLE_ENDIAN_H

#include <stdint.h>

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

#endif
