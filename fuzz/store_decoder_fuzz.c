/* SPDX-License-Identifier: BSD-3-Clause */
/* Arbitrary bytes as a client's stream. */
#include "wire/store_request_codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct store_request_decoder decoder;
    store_request_decoder_init(&decoder, &STORE_LIMITS_DEFAULT);
    struct slice input = {data, size};
    struct store_decoded_request out;
    while (store_request_decoder_next(&decoder, input, &out) == FAILURE_NONE) {
        input = (struct slice){input.data + out.consumed, input.length - out.consumed};
    }
    store_request_decoder_clear(&decoder);
    return 0;
}
