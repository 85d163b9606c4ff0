/* SPDX-License-Identifier: BSD-3-Clause */
/* Arbitrary bytes encoded and decoded again, which must give them back, and decoded as they are:
 * what that gives must survive the same. */
#include "fuzz_input.h"

#include "wire/base64.h"

static void go_there_and_back(struct slice input) {
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
    go_there_and_back(input);
    if (base64_decode(input, &decoded) == FAILURE_NONE) {
        FUZZ_REQUIRE(decoded.length <= size / 4 * 3 + size % 4 * 3 / 4);
        go_there_and_back(bytes_slice(&decoded));
    } else {
        FUZZ_REQUIRE(decoded.length == 0);
    }
    bytes_clear(&decoded);
    return 0;
}
