/* SPDX-License-Identifier: BSD-3-Clause */
/* Decodes arbitrary bytes as a server's reply to a request that the first two bytes choose, first
 * in one piece, then byte by byte. Both must give the same result. An accepted reply must encode to
 * the bytes it was found in. */
#include "fuzz_input.h"

#include <string.h>

#include "base/memory.h"
#include "wire/store/store_codec.h"

static const struct store_reply_limits limits = {.blob_bytes = 256, .reply_bytes = 1024};

/* Decodes the first `length` bytes, in memory of exactly that size. */
static enum failure_code decode(
    struct store_reply_decoder *decoder, struct slice input, size_t length, size_t *consumed) {
    struct store_decoded_reply decoded;
    uint8_t *copy = memory_duplicate(input.data, length);
    enum failure_code code =
        store_reply_decoder_next(decoder, (struct slice){copy, length}, &decoded);
    if (code == FAILURE_NONE) {
        struct bytes encoded = {0};
        FUZZ_REQUIRE(store_reply_encode(&decoded.reply, &encoded) == FAILURE_NONE);
        FUZZ_REQUIRE(encoded.length == decoded.consumed && decoded.consumed <= length);
        FUZZ_REQUIRE(encoded.length == store_reply_encoded_size(&decoded.reply));
        FUZZ_REQUIRE(encoded.length == 0 || memcmp(encoded.data, copy, encoded.length) == 0);
        bytes_clear(&encoded);
        *consumed = decoded.consumed;
    } else if (code == FAILURE_INCOMPLETE) {
        FUZZ_REQUIRE(decoded.needed > length && decoded.needed <= limits.reply_bytes);
    } else {
        FUZZ_REQUIRE(strlen(decoded.reason) > 0);
    }
    free(copy);
    return code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct slice input = {data, size};
    struct store_request request = {
        .operation = (enum store_operation)(fuzz_take_byte(&input) % STORE_OPERATION_COUNT)};
    request.count = fuzz_take_byte(&input) % 32;
    struct store_reply_decoder decoder;
    store_reply_decoder_init(&decoder, &limits);
    store_reply_decoder_expect(&decoder, &request);
    size_t consumed = 0;
    enum failure_code whole = decode(&decoder, input, input.length, &consumed);
    store_reply_decoder_expect(&decoder, &request);
    size_t consumed_in_pieces = 0;
    enum failure_code pieces = FAILURE_INCOMPLETE;
    for (size_t length = 0; length <= input.length && pieces == FAILURE_INCOMPLETE; length++) {
        pieces = decode(&decoder, input, length, &consumed_in_pieces);
    }
    FUZZ_REQUIRE(whole == pieces);
    FUZZ_REQUIRE(consumed == consumed_in_pieces);
    store_reply_decoder_clear(&decoder);
    return 0;
}
