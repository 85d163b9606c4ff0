/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/store_reply_codec.h"

#include <stdlib.h>

enum failure_code store_reply_encode(const struct store_reply *reply, struct bytes *out) {
    (void)reply;
    return bytes_append(out, "", 0);
}

size_t store_reply_encoded_size(const struct store_reply *reply) {
    (void)reply;
    return 0;
}

void store_reply_decoder_init(
    struct store_reply_decoder *decoder, const struct store_reply_limits *limits) {
    *decoder = (struct store_reply_decoder){.limits = *limits};
}

void store_reply_decoder_clear(struct store_reply_decoder *decoder) {
    free(decoder->blobs);
}

void store_reply_decoder_expect(
    struct store_reply_decoder *decoder, const struct store_request *request) {
    decoder->operation = request->operation;
    decoder->count = request->count;
}

enum failure_code store_reply_decoder_next(
    struct store_reply_decoder *decoder, struct slice input, struct store_decoded_reply *out) {
    (void)decoder;
    out->needed = input.length + 1;
    return FAILURE_INCOMPLETE;
}
