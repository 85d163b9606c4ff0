/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "base/bytes.h"

/* The key 00 01 … 0f and the messages 00 01 02 … of the SipHash paper and its vectors. */
TEST(hashes_are_those_of_the_paper) {
    const uint64_t key[2] = {UINT64_C(0x0706050403020100), UINT64_C(0x0f0e0d0c0b0a0908)};
    static const struct {
        size_t length;
        uint64_t hash;
    } vectors[] = {{0, UINT64_C(0x726fdb47dd0e0e31)}, {1, UINT64_C(0x74f839c593dc67fd)},
        {8, UINT64_C(0x93f5f5799a932462)}, {15, UINT64_C(0xa129ca6149be45e5)}};
    uint8_t message[16];
    for (size_t i = 0; i < sizeof message; i++) {
        message[i] = (uint8_t)i;
    }
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        struct slice bytes = {message, vectors[i].length};
        assert_true(keyed_hash(key, bytes) == vectors[i].hash);
    }
}
