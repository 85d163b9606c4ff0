/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/store_request_codec.h"

#include <stdlib.h>

void store_request_decoder_init(
    struct store_request_decoder *decoder, const struct store_limits *limits) {
    *decoder = (struct store_request_decoder){.limits = *limits};
}

void store_request_decoder_clear(struct store_request_decoder *decoder) {
    free(decoder->blobs);
}

enum failure_code store_request_decoder_next(
    struct store_request_decoder *decoder, struct slice input, struct store_decoded_request *out) {
    (void)decoder;
    out->needed = input.length + 1;
    return FAILURE_INCOMPLETE;
}

enum failure_code store_request_encode(const struct store_request *request, struct bytes *out) {
    uint8_t operation = (uint8_t)request->operation;
    return bytes_append(out, &operation, 1);
}

size_t store_request_encoded_size(const struct store_request *request) {
    (void)request;
    return 1;
}
