/* SPDX-License-Identifier: BSD-3-Clause */
/* Decodes arbitrary bytes as a client's stream, first as one piece, then in pieces whose sizes
 * follow from the first byte. Both must find the same requests and the same end. Each request must
 * encode to the bytes it was found in. A stream that begins as one of PyTorch 2.0 is decoded so. */
#include "fuzz_input.h"

#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "wire/store/store_codec.h"

#define FOUND_REQUESTS 64

static const struct store_limits limits = {
    .key_bytes = 64, .value_bytes = 256, .keys_per_request = 32, .request_bytes = 1024};

/* The result of decoding a stream. */
struct finding {
    size_t ends[FOUND_REQUESTS]; /* where each request ended */
    enum store_operation operations[FOUND_REQUESTS];
    size_t count;
    enum failure_code end;
};

/* An old client has other numbers for the same requests. */
static void check_encoding(
    const struct store_decoded_request *decoded, struct slice input, bool is_old) {
    struct bytes encoded = {0};
    FUZZ_REQUIRE(store_request_encode(&decoded->request, &encoded) == FAILURE_NONE);
    FUZZ_REQUIRE(encoded.length == decoded->consumed);
    FUZZ_REQUIRE(is_old || encoded.data[0] == input.data[0]);
    FUZZ_REQUIRE(memcmp(encoded.data + 1, input.data + 1, encoded.length - 1) == 0);
    bytes_clear(&encoded);
}

/* Decodes the bytes that are there. Returns true when more input could change the result. */
static bool decode_available(struct store_request_decoder *decoder, struct slice stream,
    size_t *consumed, struct finding *finding) {
    struct store_decoded_request decoded;
    while (finding->count < FOUND_REQUESTS) {
        /* Only the unconsumed bytes, in memory that is freed at once, so that the sanitizers notice
         * any other access. */
        size_t length = stream.length - *consumed;
        uint8_t *copy = memory_duplicate(stream.data + *consumed, length);
        struct slice input = {copy, length};
        finding->end = store_request_decoder_next(decoder, input, &decoded);
        if (finding->end == FAILURE_NONE) {
            check_encoding(&decoded, input, decoder->is_old);
        }
        free(copy);
        if (finding->end == FAILURE_INCOMPLETE) {
            FUZZ_REQUIRE(decoded.needed > length);
            return true;
        }
        if (finding->end != FAILURE_NONE) {
            FUZZ_REQUIRE(strlen(decoded.reason) > 0);
            return false;
        }
        FUZZ_REQUIRE(decoded.consumed > 0 && decoded.consumed <= length);
        *consumed += decoded.consumed;
        finding->ends[finding->count] = *consumed;
        finding->operations[finding->count++] = decoded.request.operation;
    }
    return false;
}

/* With `seed` 0 the stream comes in one piece. */
static void decode_stream(struct slice stream, uint8_t seed, struct finding *finding) {
    struct random random;
    random_init(&random, seed);
    struct store_request_decoder decoder;
    store_request_decoder_init(&decoder, &limits);
    size_t consumed = 0;
    size_t received = 0;
    bool is_open = true;
    do {
        size_t piece = seed == 0 ? stream.length : 1 + random_below(&random, 1 + seed % 32);
        received = piece < stream.length - received ? received + piece : stream.length;
        is_open =
            decode_available(&decoder, (struct slice){stream.data, received}, &consumed, finding);
    } while (is_open && received < stream.length);
    store_request_decoder_clear(&decoder);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct slice stream = {data, size};
    uint8_t seed = fuzz_take_byte(&stream);
    struct finding whole = {0};
    struct finding pieces = {0};
    decode_stream(stream, 0, &whole);
    decode_stream(stream, seed, &pieces);
    FUZZ_REQUIRE(memcmp(&whole, &pieces, sizeof whole) == 0);
    return 0;
}
