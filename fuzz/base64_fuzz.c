/* SPDX-License-Identifier: BSD-3-Clause */
/* Encodes arbitrary bytes and decodes the result, which must give the same bytes. Also decodes the
 * bytes as they are; a result must survive the same round trip. */
#include "fuzz_input.h"

#include "base/bytes.h"

static void encode_and_decode(struct slice input) {
    struct bytes encoded = {0};
    struct bytes decoded = {0};
    FUZZ_REQUIRE(base64_encode(input, &encoded) == FAILURE_NONE);
    FUZZ_REQUIRE(encoded.length == (input.length + 2) / 3 * 4);
    FUZZ_REQUIRE(base64_decode(bytes_slice(&encoded), &decoded) == FAILURE_NONE);
    FUZZ_REQUIRE(slice_equals(bytes_slice(&decoded), input));
    bytes_clear(&encoded);
    bytes_clear(&decoded);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct slice input = {data, size};
    struct bytes decoded = {0};
    encode_and_decode(input);
    if (base64_decode(input, &decoded) == FAILURE_NONE) {
        FUZZ_REQUIRE(decoded.length <= size / 4 * 3 + size % 4 * 3 / 4);
        encode_and_decode(bytes_slice(&decoded));
    } else {
        FUZZ_REQUIRE(decoded.length == 0);
    }
    bytes_clear(&decoded);
    return 0;
}
