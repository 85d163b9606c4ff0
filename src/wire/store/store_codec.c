/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/store/store_codec.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

static struct slice *slices_of(const struct text_list *list) {
    struct slice *slices = memory_allocate(list->count * sizeof *slices);
    for (size_t i = 0; i < list->count; i++) {
        slices[i] = slice_from_string(list->items[i]);
    }
    return slices;
}

static bool has_many_keys(enum store_operation operation) {
    return operation == STORE_WAIT || operation == STORE_CHECK || operation == STORE_MULTI_GET ||
           operation == STORE_MULTI_SET;
}

void owned_request_finish(
    struct owned_request *request, enum store_operation operation, int64_t number) {
    request->key_slices = slices_of(&request->keys);
    request->value_slices = slices_of(&request->values);
    request->request.operation = operation;
    if (has_many_keys(operation)) {
        request->request.keys = request->key_slices;
        request->request.values = operation == STORE_MULTI_SET ? request->value_slices : NULL;
        request->request.count = request->keys.count;
        return;
    }
    request->request.key = request->key_slices[0];
    request->request.number = operation == STORE_ADD ? number : 0;
    request->request.expected = bytes_slice(&request->expected);
    if (request->values.count > 0) {
        request->request.value = request->value_slices[0];
    }
}

void owned_request_clear(struct owned_request *request) {
    text_list_clear(&request->keys);
    text_list_clear(&request->values);
    bytes_clear(&request->expected);
    free(request->key_slices);
    free(request->value_slices);
    *request = (struct owned_request){0};
}

/* Request codec. */

/* The operands of each TCPStore request, in the order in which they are sent. The decoder and the
 * encoder of requests share this table; other modules do not use it. */

#define STORE_OPERANDS 4 /* the maximum number of operands of a request, plus one for the end */

enum store_operand {
    STORE_OPERAND_END = 0,
    STORE_OPERAND_MAGIC,    /* u32 */
    STORE_OPERAND_NONCE,    /* u32 */
    STORE_OPERAND_NUMBER,   /* i64 */
    STORE_OPERAND_KEY,      /* blob */
    STORE_OPERAND_VALUE,    /* blob */
    STORE_OPERAND_EXPECTED, /* blob */
    STORE_OPERAND_COUNT,    /* u64: the number of keys or pairs that follow */
    STORE_OPERAND_KEYS,     /* `count` blobs */
    STORE_OPERAND_PAIRS,    /* `count` times a key and a value */
};

static const uint8_t store_grammar[STORE_OPERATION_COUNT][STORE_OPERANDS] = {
    [STORE_VALIDATE] = {STORE_OPERAND_MAGIC},
    [STORE_SET] = {STORE_OPERAND_KEY, STORE_OPERAND_VALUE},
    [STORE_COMPARE_SET] = {STORE_OPERAND_KEY, STORE_OPERAND_EXPECTED, STORE_OPERAND_VALUE},
    [STORE_GET] = {STORE_OPERAND_KEY},
    [STORE_ADD] = {STORE_OPERAND_KEY, STORE_OPERAND_NUMBER},
    [STORE_CHECK] = {STORE_OPERAND_COUNT, STORE_OPERAND_KEYS},
    [STORE_WAIT] = {STORE_OPERAND_COUNT, STORE_OPERAND_KEYS},
    [STORE_COUNT_KEYS] = {STORE_OPERAND_END},
    [STORE_DELETE] = {STORE_OPERAND_KEY},
    [STORE_APPEND] = {STORE_OPERAND_KEY, STORE_OPERAND_VALUE},
    [STORE_MULTI_GET] = {STORE_OPERAND_COUNT, STORE_OPERAND_KEYS},
    [STORE_MULTI_SET] = {STORE_OPERAND_COUNT, STORE_OPERAND_PAIRS},
    [STORE_CANCEL_WAIT] = {STORE_OPERAND_END},
    [STORE_PING] = {STORE_OPERAND_NONCE},
    [STORE_QUEUE_PUSH] = {STORE_OPERAND_KEY, STORE_OPERAND_VALUE},
    [STORE_QUEUE_POP] = {STORE_OPERAND_KEY},
    [STORE_QUEUE_LENGTH] = {STORE_OPERAND_KEY},
    [STORE_LIST_KEYS] = {STORE_OPERAND_END},
    [STORE_BARRIER] = {STORE_OPERAND_KEY, STORE_OPERAND_NUMBER},
};

/* Request codec. */

/* The number in a VALIDATE request (detail::validationMagicNumber in TCPStoreBackend.hpp). */
#define STORE_VALIDATE_MAGIC 0x3C85F7CEU

#define LENGTH_BYTES 8
#define REQUEST_CODEC_KEPT_BLOBS                                                                   \
    64 /* lists up to this long keep their memory for the next request */

void store_request_decoder_init(
    struct store_request_decoder *decoder, const struct store_limits *limits) {
    *decoder = (struct store_request_decoder){.limits = *limits};
}

void store_request_decoder_clear(struct store_request_decoder *decoder) {
    free(decoder->blobs);
    *decoder = (struct store_request_decoder){.limits = decoder->limits};
}

/* FAILURE_INCOMPLETE when fewer than `length` more bytes are there. At least `following` more bytes
 * come after them. */
static enum failure_code request_codec_require(const struct store_request_decoder *decoder,
    struct slice input, size_t length, size_t following, struct store_decoded_request *out) {
    if (input.length - decoder->scanned >= length) {
        return FAILURE_NONE;
    }
    out->needed = decoder->scanned + length + following;
    return FAILURE_INCOMPLETE;
}

static enum failure_code request_codec_refuse_size(struct store_decoded_request *out,
    uint8_t operation, const char *what, uint64_t size, size_t limit) {
    (void)snprintf(out->reason, sizeof out->reason, "%s: %s of %" PRIu64 ", the limit is %zu",
        store_operation_name((enum store_operation)operation), what, size, limit);
    return FAILURE_LIMIT;
}

/* Scans one blob. At least `following` more bytes come after it within the request. */
static enum failure_code request_codec_scan_blob(struct store_request_decoder *decoder,
    struct slice input, bool is_key, size_t following, struct store_decoded_request *out) {
    enum failure_code code = request_codec_require(decoder, input, LENGTH_BYTES, following, out);
    if (code != FAILURE_NONE) {
        return code;
    }
    uint64_t length = little_endian_load64(input.data + decoder->scanned);
    size_t limit = is_key ? decoder->limits.key_bytes : decoder->limits.value_bytes;
    if (length > limit) {
        return request_codec_refuse_size(
            out, decoder->operation, is_key ? "a key length" : "a value length", length, limit);
    }
    code = request_codec_require(decoder, input, LENGTH_BYTES + (size_t)length, following, out);
    if (code == FAILURE_NONE) {
        decoder->scanned += LENGTH_BYTES + (size_t)length;
    }
    return code;
}

static enum failure_code scan_count(struct store_request_decoder *decoder, struct slice input,
    bool is_pairs, struct store_decoded_request *out) {
    enum failure_code code = request_codec_require(decoder, input, LENGTH_BYTES, 0, out);
    if (code != FAILURE_NONE) {
        return code;
    }
    uint64_t count = little_endian_load64(input.data + decoder->scanned);
    if (count > decoder->limits.keys_per_request) {
        return request_codec_refuse_size(
            out, decoder->operation, "a key count", count, decoder->limits.keys_per_request);
    }
    decoder->scanned += LENGTH_BYTES;
    decoder->count = (size_t)count;
    decoder->blobs_left = is_pairs ? 2 * decoder->count : decoder->count;
    return FAILURE_NONE;
}

static enum failure_code scan_list(struct store_request_decoder *decoder, struct slice input,
    bool is_pairs, struct store_decoded_request *out) {
    while (decoder->blobs_left > 0) {
        /* While an even number of blobs is left, the next one is the key of a pair. */
        bool is_key = !is_pairs || decoder->blobs_left % 2 == 0;
        size_t following = (decoder->blobs_left - 1) * LENGTH_BYTES;
        enum failure_code code = request_codec_scan_blob(decoder, input, is_key, following, out);
        size_t least = (code == FAILURE_INCOMPLETE ? out->needed : decoder->scanned + following);
        if (code != FAILURE_LIMIT && least > decoder->limits.request_bytes) {
            return request_codec_refuse_size(
                out, decoder->operation, "a request size", least, decoder->limits.request_bytes);
        }
        if (code != FAILURE_NONE) {
            return code;
        }
        decoder->blobs_left--;
    }
    return FAILURE_NONE;
}

static enum failure_code scan_fixed(struct store_request_decoder *decoder, struct slice input,
    size_t length, struct store_decoded_request *out) {
    enum failure_code code = request_codec_require(decoder, input, length, 0, out);
    if (code == FAILURE_NONE) {
        decoder->scanned += length;
    }
    return code;
}

static enum failure_code scan_operand(struct store_request_decoder *decoder, struct slice input,
    const uint8_t *operands, struct store_decoded_request *out) {
    switch ((enum store_operand)operands[decoder->field]) {
    case STORE_OPERAND_END:
        break;
    case STORE_OPERAND_MAGIC:
    case STORE_OPERAND_NONCE:
        return scan_fixed(decoder, input, 4, out);
    case STORE_OPERAND_NUMBER:
        return scan_fixed(decoder, input, 8, out);
    case STORE_OPERAND_KEY:
        return request_codec_scan_blob(decoder, input, true, 0, out);
    case STORE_OPERAND_VALUE:
    case STORE_OPERAND_EXPECTED:
        return request_codec_scan_blob(decoder, input, false, 0, out);
    case STORE_OPERAND_COUNT:
        return scan_count(decoder, input, operands[decoder->field + 1] == STORE_OPERAND_PAIRS, out);
    case STORE_OPERAND_KEYS:
        return scan_list(decoder, input, false, out);
    case STORE_OPERAND_PAIRS:
        return scan_list(decoder, input, true, out);
    }
    return FAILURE_NONE;
}

/* What the first byte of a request means, as an old client has it; STORE_VALIDATE: nothing. (7 is
 * WATCH_KEY, which PyTorch has removed, and which 1.13 does not offer to Python programs.) */
static uint8_t old_operation(uint8_t byte) {
    static const uint8_t operations[] = {STORE_SET, STORE_COMPARE_SET, STORE_GET, STORE_ADD,
        STORE_CHECK, STORE_WAIT, STORE_COUNT_KEYS, STORE_VALIDATE, STORE_DELETE};
    return byte < sizeof operations ? operations[byte] : STORE_VALIDATE;
}

static enum failure_code unknown_operation(uint8_t byte, struct store_decoded_request *out) {
    (void)snprintf(out->reason, sizeof out->reason, "unknown operation 0x%02x", byte);
    return FAILURE_PROTOCOL;
}

/* A first byte 0 begins a handshake, until what follows says otherwise (take_magic). */
static enum failure_code take_first_byte(
    struct store_request_decoder *decoder, uint8_t byte, struct store_decoded_request *out) {
    decoder->operation = byte == 0 ? (uint8_t)STORE_VALIDATE : old_operation(byte);
    decoder->is_old = decoder->operation != STORE_VALIDATE;
    decoder->is_validated = decoder->is_old;
    if (byte != 0 && !decoder->is_old) {
        (void)snprintf(out->reason, sizeof out->reason,
            "first byte 0x%02x where VALIDATE is due: not a TCPStore client", byte);
        return FAILURE_PROTOCOL;
    }
    return FAILURE_NONE;
}

static enum failure_code take_operation(
    struct store_request_decoder *decoder, uint8_t byte, struct store_decoded_request *out) {
    if (!decoder->is_validated) {
        return take_first_byte(decoder, byte, out);
    }
    if (decoder->is_old) {
        decoder->operation = old_operation(byte);
        return decoder->operation == STORE_VALIDATE ? unknown_operation(byte, out) : FAILURE_NONE;
    }
    if (byte == STORE_VALIDATE) {
        (void)snprintf(out->reason, sizeof out->reason, "VALIDATE a second time");
        return FAILURE_PROTOCOL;
    }
    decoder->operation = byte;
    return byte >= STORE_OPERATION_COUNT ? unknown_operation(byte, out) : FAILURE_NONE;
}

/* Where an old client begins with SET, the length of its key is in this place: its keys begin with
 * '/'. */
static enum failure_code take_magic(struct store_request_decoder *decoder, const uint8_t *operand,
    struct store_decoded_request *out) {
    uint32_t magic = little_endian_load32(operand);
    decoder->is_validated = true;
    if (magic == STORE_VALIDATE_MAGIC) {
        return FAILURE_NONE;
    }
    if (magic > 0 && magic <= decoder->limits.key_bytes) {
        decoder->is_old = true;
        decoder->scanned = 0;
        return FAILURE_NONE;
    }
    (void)snprintf(out->reason, sizeof out->reason,
        "VALIDATE with 0x%08" PRIx32 " instead of 0x%08" PRIx32 ": not a TCPStore client", magic,
        (uint32_t)STORE_VALIDATE_MAGIC);
    return FAILURE_PROTOCOL;
}

static struct slice fill_blob(const uint8_t **position) {
    struct slice blob = {*position + LENGTH_BYTES, (size_t)little_endian_load64(*position)};
    *position = blob.data + blob.length;
    return blob;
}

static void fill_list(struct store_request_decoder *decoder, bool is_pairs,
    const uint8_t **position, struct store_request *request) {
    size_t count = decoder->count;
    decoder->blobs = memory_reserve(decoder->blobs, &decoder->blob_capacity,
        is_pairs ? 2 * count : count, sizeof *decoder->blobs);
    for (size_t i = 0; i < count; i++) {
        decoder->blobs[i] = fill_blob(position);
        if (is_pairs) {
            decoder->blobs[count + i] = fill_blob(position);
        }
    }
    request->count = count;
    request->keys = decoder->blobs;
    request->values = is_pairs && count > 0 ? decoder->blobs + count : NULL;
}

static void fill_operand(struct store_request_decoder *decoder, uint8_t operand,
    const uint8_t **position, struct store_request *request) {
    switch ((enum store_operand)operand) {
    case STORE_OPERAND_END:
        break;
    case STORE_OPERAND_MAGIC:
        *position += 4;
        break;
    case STORE_OPERAND_NONCE:
        request->nonce = little_endian_load32(*position);
        *position += 4;
        break;
    case STORE_OPERAND_NUMBER:
        request->number = (int64_t)little_endian_load64(*position);
        *position += 8;
        break;
    case STORE_OPERAND_KEY:
        request->key = fill_blob(position);
        break;
    case STORE_OPERAND_VALUE:
        request->value = fill_blob(position);
        break;
    case STORE_OPERAND_EXPECTED:
        request->expected = fill_blob(position);
        break;
    case STORE_OPERAND_COUNT:
        *position += LENGTH_BYTES;
        break;
    case STORE_OPERAND_KEYS:
        fill_list(decoder, false, position, request);
        break;
    case STORE_OPERAND_PAIRS:
        fill_list(decoder, true, position, request);
        break;
    }
}

static void fill(
    struct store_request_decoder *decoder, struct slice input, struct store_request *request) {
    *request = (struct store_request){.operation = (enum store_operation)decoder->operation};
    const uint8_t *operands = store_grammar[decoder->operation];
    const uint8_t *position = input.data + 1;
    for (size_t i = 0; operands[i] != STORE_OPERAND_END; i++) {
        fill_operand(decoder, operands[i], &position, request);
    }
}

static void forget_large_list(struct store_request_decoder *decoder) {
    if (decoder->blob_capacity > REQUEST_CODEC_KEPT_BLOBS) {
        free(decoder->blobs);
        decoder->blobs = NULL;
        decoder->blob_capacity = 0;
    }
}

/* Reads the operation byte at the beginning of a request. */
static enum failure_code begin(
    struct store_request_decoder *decoder, struct slice input, struct store_decoded_request *out) {
    forget_large_list(decoder);
    if (input.length == 0) {
        out->needed = 1;
        return FAILURE_INCOMPLETE;
    }
    enum failure_code code = take_operation(decoder, input.data[0], out);
    if (code == FAILURE_NONE) {
        decoder->scanned = 1;
        decoder->field = 0;
    }
    return code;
}

/* Scans what is left of the current request. */
static enum failure_code scan(
    struct store_request_decoder *decoder, struct slice input, struct store_decoded_request *out) {
    enum failure_code code = decoder->scanned == 0 ? begin(decoder, input, out) : FAILURE_NONE;
    if (code != FAILURE_NONE) {
        return code;
    }
    const uint8_t *operands = store_grammar[decoder->operation];
    while (operands[decoder->field] != STORE_OPERAND_END) {
        code = scan_operand(decoder, input, operands, out);
        if (code != FAILURE_NONE) {
            return code;
        }
        decoder->field++;
    }
    return FAILURE_NONE;
}

enum failure_code store_request_decoder_next(
    struct store_request_decoder *decoder, struct slice input, struct store_decoded_request *out) {
    enum failure_code code = scan(decoder, input, out);
    if (code == FAILURE_NONE && !decoder->is_validated) {
        code = take_magic(decoder, input.data + 1, out);
        if (code == FAILURE_NONE && decoder->is_old) {
            code = scan(decoder, input, out);
        }
    }
    if (code != FAILURE_NONE) {
        return code;
    }
    fill(decoder, input, &out->request);
    out->consumed = decoder->scanned;
    decoder->scanned = 0;
    return FAILURE_NONE;
}

static size_t operand_size(uint8_t operand, const struct store_request *request) {
    size_t size = 0;
    switch ((enum store_operand)operand) {
    case STORE_OPERAND_END:
        break;
    case STORE_OPERAND_MAGIC:
    case STORE_OPERAND_NONCE:
        return 4;
    case STORE_OPERAND_NUMBER:
    case STORE_OPERAND_COUNT:
        return 8;
    case STORE_OPERAND_KEY:
        return LENGTH_BYTES + request->key.length;
    case STORE_OPERAND_VALUE:
        return LENGTH_BYTES + request->value.length;
    case STORE_OPERAND_EXPECTED:
        return LENGTH_BYTES + request->expected.length;
    case STORE_OPERAND_KEYS:
    case STORE_OPERAND_PAIRS:
        for (size_t i = 0; i < request->count; i++) {
            size += LENGTH_BYTES + request->keys[i].length;
            if (operand == STORE_OPERAND_PAIRS) {
                size += LENGTH_BYTES + request->values[i].length;
            }
        }
        break;
    }
    return size;
}

/* The number of bytes that store_request_encode appends. */
static size_t store_request_encoded_size(const struct store_request *request) {
    const uint8_t *operands = store_grammar[request->operation];
    size_t size = 1;
    for (size_t i = 0; operands[i] != STORE_OPERAND_END; i++) {
        size += operand_size(operands[i], request);
    }
    return size;
}

static uint8_t *request_codec_write_blob(uint8_t *position, struct slice blob) {
    little_endian_store64(position, blob.length);
    if (blob.length > 0) {
        memcpy(position + LENGTH_BYTES, blob.data, blob.length);
    }
    return position + LENGTH_BYTES + blob.length;
}

static uint8_t *write_operand(
    uint8_t *position, uint8_t operand, const struct store_request *request) {
    switch ((enum store_operand)operand) {
    case STORE_OPERAND_END:
        break;
    case STORE_OPERAND_MAGIC:
        little_endian_store32(position, STORE_VALIDATE_MAGIC);
        return position + 4;
    case STORE_OPERAND_NONCE:
        little_endian_store32(position, request->nonce);
        return position + 4;
    case STORE_OPERAND_NUMBER:
        little_endian_store64(position, (uint64_t)request->number);
        return position + 8;
    case STORE_OPERAND_COUNT:
        little_endian_store64(position, request->count);
        return position + 8;
    case STORE_OPERAND_KEY:
        return request_codec_write_blob(position, request->key);
    case STORE_OPERAND_VALUE:
        return request_codec_write_blob(position, request->value);
    case STORE_OPERAND_EXPECTED:
        return request_codec_write_blob(position, request->expected);
    case STORE_OPERAND_KEYS:
    case STORE_OPERAND_PAIRS:
        for (size_t i = 0; i < request->count; i++) {
            position = request_codec_write_blob(position, request->keys[i]);
            if (operand == STORE_OPERAND_PAIRS) {
                position = request_codec_write_blob(position, request->values[i]);
            }
        }
        break;
    }
    return position;
}

enum failure_code store_request_encode(const struct store_request *request, struct bytes *out) {
    size_t size = store_request_encoded_size(request);
    enum failure_code code = bytes_reserve(out, size);
    if (code != FAILURE_NONE) {
        return code;
    }
    const uint8_t *operands = store_grammar[request->operation];
    uint8_t *position = out->data + out->length;
    *position++ = (uint8_t)request->operation;
    for (size_t i = 0; operands[i] != STORE_OPERAND_END; i++) {
        position = write_operand(position, operands[i], request);
    }
    out->length += size;
    return FAILURE_NONE;
}

/* Reader. */

void store_reader_init(struct store_reader *reader, const struct store_limits *limits) {
    *reader = (struct store_reader){0};
    store_request_decoder_init(&reader->decoder, limits);
}

void store_reader_clear(struct store_reader *reader) {
    store_request_decoder_clear(&reader->decoder);
}

static const char no_proof_of_old_clients[] =
    "a client of a PyTorch older than 2.1, which cannot prove that it is of this job "
    "(--auth none on all nodes would let it in)";

static enum failure_code refuse(struct store_reading *out, const char *reason) {
    (void)snprintf(out->decoded.reason, sizeof out->decoded.reason, "%s", reason);
    return FAILURE_PROTOCOL;
}

/* The front of what a client without proof sends. FAILURE_NONE: a part of the proof; or nothing was
 * consumed, and the request decoder is to look at it. */
static enum failure_code take_proof(struct store_reader *reader, const struct store_gate *gate,
    struct slice prefix, struct slice input, struct store_reading *out) {
    struct store_proof_step step = store_proof_serve(&reader->proof, gate->key, prefix, input);
    memcpy(out->reply, step.reply, step.reply_length);
    out->reply_length = step.reply_length;
    out->decoded.consumed = step.consumed;
    out->decoded.needed = step.needed;
    out->presented = step.presented;
    if (step.outcome == STORE_PROOF_FAILED) {
        return refuse(out, step.reason);
    }
    return step.outcome == STORE_PROOF_INCOMPLETE ? FAILURE_INCOMPLETE : FAILURE_NONE;
}

static enum failure_code take_request(
    struct store_reader *reader, struct slice input, struct store_reading *out) {
    enum failure_code code = store_request_decoder_next(&reader->decoder, input, &out->decoded);
    out->is_request = code == FAILURE_NONE;
    return code;
}

enum failure_code store_reader_next(struct store_reader *reader, const struct store_gate *gate,
    struct slice input, struct store_reading *out) {
    out->is_request = false;
    out->reply_length = 0;
    out->decoded.consumed = 0;
    out->decoded.needed = 0;
    out->presented = (struct slice){0};
    if (gate->key == NULL || reader->proof.stage == STORE_PROOF_STAGE_PROVEN) {
        return take_request(reader, input, out);
    }
    struct slice prefix = gate->guarded_prefix;
    enum failure_code code = FAILURE_NONE;
    if (reader->decoder.is_validated && !reader->decoder.is_old) {
        code = take_proof(reader, gate, prefix, input, out);
    }
    if (code != FAILURE_NONE || out->decoded.consumed > 0) {
        return code;
    }
    code = take_request(reader, input, out);
    if (reader->decoder.is_old && prefix.length == 0) {
        return refuse(out, no_proof_of_old_clients);
    }
    if (code == FAILURE_NONE) {
        struct store_request *request = &out->decoded.request;
        const char *objection = store_proof_objection(request, prefix);
        request->nonce = store_proof_ping_answer(&reader->proof, gate->key, request->nonce);
        code = objection == NULL ? FAILURE_NONE : refuse(out, objection);
    }
    return code;
}

/* Reply codec. */
#define REPLY_CODEC_KEPT_BLOBS 64 /* lists up to this long keep their memory for the next reply */

static size_t blobs_size(const struct slice *items, size_t count) {
    size_t size = 0;
    for (size_t i = 0; i < count; i++) {
        size += LENGTH_BYTES + items[i].length;
    }
    return size;
}

size_t store_reply_encoded_size(const struct store_reply *reply) {
    switch (reply->kind) {
    case STORE_REPLY_NONE:
        break;
    case STORE_REPLY_BYTE:
        return 1;
    case STORE_REPLY_INTEGER:
        return 8;
    case STORE_REPLY_NONCE:
        return 4;
    case STORE_REPLY_BLOB:
        return LENGTH_BYTES + reply->blob.length;
    case STORE_REPLY_BLOBS:
        return blobs_size(reply->list.items, reply->list.count);
    case STORE_REPLY_KEYS:
        return LENGTH_BYTES + blobs_size(reply->list.items, reply->list.count);
    case STORE_REPLY_POP:
        return LENGTH_BYTES + (reply->pop.length > 0 ? LENGTH_BYTES + reply->pop.front.length : 0);
    }
    return 0;
}

static uint8_t *write_integer(uint8_t *position, uint64_t value) {
    little_endian_store64(position, value);
    return position + 8;
}

static uint8_t *reply_codec_write_blob(uint8_t *position, struct slice blob) {
    position = write_integer(position, blob.length);
    if (blob.length > 0) {
        memcpy(position, blob.data, blob.length);
    }
    return position + blob.length;
}

static void write_reply(uint8_t *position, const struct store_reply *reply) {
    switch (reply->kind) {
    case STORE_REPLY_NONE:
        break;
    case STORE_REPLY_BYTE:
        *position = reply->byte;
        break;
    case STORE_REPLY_INTEGER:
        (void)write_integer(position, (uint64_t)reply->integer);
        break;
    case STORE_REPLY_NONCE:
        little_endian_store32(position, reply->nonce);
        break;
    case STORE_REPLY_BLOB:
        (void)reply_codec_write_blob(position, reply->blob);
        break;
    case STORE_REPLY_KEYS:
    case STORE_REPLY_BLOBS:
        if (reply->kind == STORE_REPLY_KEYS) {
            position = write_integer(position, reply->list.count);
        }
        for (size_t i = 0; i < reply->list.count; i++) {
            position = reply_codec_write_blob(position, reply->list.items[i]);
        }
        break;
    case STORE_REPLY_POP:
        position = write_integer(position, (uint64_t)reply->pop.length);
        if (reply->pop.length > 0) {
            (void)reply_codec_write_blob(position, reply->pop.front);
        }
        break;
    }
}

enum failure_code store_reply_encode(const struct store_reply *reply, struct bytes *out) {
    size_t size = store_reply_encoded_size(reply);
    enum failure_code code = bytes_reserve(out, size);
    if (code == FAILURE_NONE && size > 0) {
        write_reply(out->data + out->length, reply);
        out->length += size;
    }
    return code;
}

void store_reply_decoder_init(
    struct store_reply_decoder *decoder, const struct store_reply_limits *limits) {
    *decoder = (struct store_reply_decoder){.limits = *limits};
}

void store_reply_decoder_clear(struct store_reply_decoder *decoder) {
    free(decoder->blobs);
    *decoder = (struct store_reply_decoder){.limits = decoder->limits};
}

void store_reply_decoder_expect(
    struct store_reply_decoder *decoder, const struct store_request *request) {
    decoder->operation = request->operation;
    decoder->asked = request->count;
    decoder->scanned = 0;
    decoder->seen = 0;
    if (decoder->blob_capacity > REPLY_CODEC_KEPT_BLOBS) {
        free(decoder->blobs);
        decoder->blobs = NULL;
        decoder->blob_capacity = 0;
    }
}

static enum failure_code reply_codec_refuse_size(
    const struct store_reply_decoder *decoder, struct store_decoded_reply *out) {
    (void)snprintf(out->reason, sizeof out->reason,
        "%s: the server's reply is longer than the %zu bytes accepted",
        store_operation_name(decoder->operation), decoder->limits.reply_bytes);
    return FAILURE_LIMIT;
}

static enum failure_code refuse_value(
    const struct store_reply_decoder *decoder, struct store_decoded_reply *out, uint64_t value) {
    (void)snprintf(out->reason, sizeof out->reason,
        "%s: the server answered %" PRId64 ", which is not a valid reply",
        store_operation_name(decoder->operation), (int64_t)value);
    return FAILURE_PROTOCOL;
}

/* FAILURE_INCOMPLETE when fewer than `length` more bytes are there; FAILURE_LIMIT when the reply
 * would become too long. */
static enum failure_code reply_codec_require(const struct store_reply_decoder *decoder,
    struct slice input, uint64_t length, struct store_decoded_reply *out) {
    if (length > decoder->limits.reply_bytes - decoder->scanned) {
        return reply_codec_refuse_size(decoder, out);
    }
    if (input.length - decoder->scanned < length) {
        out->needed = decoder->scanned + (size_t)length;
        return FAILURE_INCOMPLETE;
    }
    return FAILURE_NONE;
}

/* Scans one blob. */
static enum failure_code reply_codec_scan_blob(struct store_reply_decoder *decoder,
    struct slice input, struct slice *blob, struct store_decoded_reply *out) {
    enum failure_code code = reply_codec_require(decoder, input, LENGTH_BYTES, out);
    if (code != FAILURE_NONE) {
        return code;
    }
    uint64_t length = little_endian_load64(input.data + decoder->scanned);
    if (length > decoder->limits.blob_bytes) {
        (void)snprintf(out->reason, sizeof out->reason,
            "%s: the server sent a length of %" PRIu64 ", the limit is %zu",
            store_operation_name(decoder->operation), length, decoder->limits.blob_bytes);
        return FAILURE_LIMIT;
    }
    code = reply_codec_require(decoder, input, LENGTH_BYTES + length, out);
    if (code == FAILURE_NONE) {
        *blob = (struct slice){input.data + decoder->scanned + LENGTH_BYTES, (size_t)length};
        decoder->scanned += LENGTH_BYTES + (size_t)length;
    }
    return code;
}

static enum failure_code scan_integer(struct store_reply_decoder *decoder, struct slice input,
    uint64_t *value, struct store_decoded_reply *out) {
    enum failure_code code = reply_codec_require(decoder, input, 8, out);
    if (code == FAILURE_NONE) {
        *value = little_endian_load64(input.data + decoder->scanned);
        decoder->scanned += 8;
    }
    return code;
}

static enum failure_code decode_byte(
    struct store_reply_decoder *decoder, struct slice input, struct store_decoded_reply *out) {
    enum failure_code code = reply_codec_require(decoder, input, 1, out);
    if (code != FAILURE_NONE) {
        return code;
    }
    uint8_t byte = input.data[0];
    if (byte > 1) {
        return refuse_value(decoder, out, byte);
    }
    decoder->scanned = 1;
    out->reply.byte = byte;
    return FAILURE_NONE;
}

static enum failure_code decode_nonce(
    struct store_reply_decoder *decoder, struct slice input, struct store_decoded_reply *out) {
    enum failure_code code = reply_codec_require(decoder, input, 4, out);
    if (code == FAILURE_NONE) {
        out->reply.nonce = little_endian_load32(input.data);
        decoder->scanned = 4;
    }
    return code;
}

/* The length is read again on each call; it has only eight bytes. */
static enum failure_code decode_pop(
    struct store_reply_decoder *decoder, struct slice input, struct store_decoded_reply *out) {
    decoder->scanned = 0;
    uint64_t length = 0;
    enum failure_code code = scan_integer(decoder, input, &length, out);
    if (code != FAILURE_NONE) {
        return code;
    }
    if (length > INT64_MAX) {
        return refuse_value(decoder, out, length);
    }
    struct slice front = {0};
    code = length > 0 ? reply_codec_scan_blob(decoder, input, &front, out) : FAILURE_NONE;
    if (code == FAILURE_NONE) {
        out->reply.pop.length = (int64_t)length;
        out->reply.pop.front = front;
    }
    return code;
}

/* Scans `decoder->count` blobs, then walks over them again to make their slices, because the input
 * may have moved between two calls. */
static enum failure_code decode_blobs(struct store_reply_decoder *decoder, struct slice input,
    size_t start, struct store_decoded_reply *out) {
    struct slice blob;
    while (decoder->seen < decoder->count) {
        enum failure_code code = reply_codec_scan_blob(decoder, input, &blob, out);
        if (code != FAILURE_NONE) {
            return code;
        }
        decoder->seen++;
    }
    decoder->blobs = memory_reserve(
        decoder->blobs, &decoder->blob_capacity, decoder->count, sizeof *decoder->blobs);
    size_t position = start;
    for (size_t i = 0; i < decoder->count; i++) {
        size_t length = (size_t)little_endian_load64(input.data + position);
        position += LENGTH_BYTES;
        decoder->blobs[i] = (struct slice){input.data + position, length};
        position += length;
    }
    out->reply.list.items = decoder->blobs;
    out->reply.list.count = decoder->count;
    return FAILURE_NONE;
}

static enum failure_code decode_keys(
    struct store_reply_decoder *decoder, struct slice input, struct store_decoded_reply *out) {
    if (decoder->scanned == 0) {
        uint64_t count = 0;
        enum failure_code code = scan_integer(decoder, input, &count, out);
        if (code != FAILURE_NONE) {
            return code;
        }
        if (count > INT64_MAX) {
            return refuse_value(decoder, out, count);
        }
        if (count > decoder->limits.reply_bytes / LENGTH_BYTES) {
            return reply_codec_refuse_size(decoder, out);
        }
        decoder->count = (size_t)count;
    }
    return decode_blobs(decoder, input, LENGTH_BYTES, out);
}

static enum failure_code decode(
    struct store_reply_decoder *decoder, struct slice input, struct store_decoded_reply *out) {
    enum failure_code code = FAILURE_NONE;
    struct slice blob;
    uint64_t integer = 0;
    switch (out->reply.kind) {
    case STORE_REPLY_NONE:
        break;
    case STORE_REPLY_BYTE:
        return decode_byte(decoder, input, out);
    case STORE_REPLY_INTEGER:
        code = scan_integer(decoder, input, &integer, out);
        out->reply.integer = (int64_t)integer;
        break;
    case STORE_REPLY_NONCE:
        return decode_nonce(decoder, input, out);
    case STORE_REPLY_BLOB:
        code = reply_codec_scan_blob(decoder, input, &blob, out);
        if (code == FAILURE_NONE) {
            out->reply.blob = blob;
        }
        break;
    case STORE_REPLY_BLOBS:
        decoder->count = decoder->asked;
        return decode_blobs(decoder, input, 0, out);
    case STORE_REPLY_KEYS:
        return decode_keys(decoder, input, out);
    case STORE_REPLY_POP:
        return decode_pop(decoder, input, out);
    }
    return code;
}

enum failure_code store_reply_decoder_next(
    struct store_reply_decoder *decoder, struct slice input, struct store_decoded_reply *out) {
    out->reply = (struct store_reply){.kind = store_operation_reply_kind(decoder->operation)};
    enum failure_code code = decode(decoder, input, out);
    if (code == FAILURE_NONE) {
        out->consumed = decoder->scanned;
        decoder->scanned = 0;
        decoder->seen = 0;
    }
    return code;
}

/* File store codec. */

#define LENGTH_SIZE 4
#define REMOVAL_MARK '-'

/* Takes a length and that many bytes off the front of `input`. */
static enum failure_code take_text(struct slice *input, size_t limit, struct slice *out_text) {
    if (input->length < LENGTH_SIZE) {
        return FAILURE_INCOMPLETE;
    }
    size_t length = little_endian_load32(input->data);
    if (length > limit) {
        return FAILURE_MALFORMED;
    }
    if (input->length - LENGTH_SIZE < length) {
        return FAILURE_INCOMPLETE;
    }
    *out_text = (struct slice){input->data + LENGTH_SIZE, length};
    input->data += LENGTH_SIZE + length;
    input->length -= LENGTH_SIZE + length;
    return FAILURE_NONE;
}

enum failure_code file_store_record_read(struct slice input, const struct file_store_limits *limits,
    struct file_store_record *out_record, size_t *out_consumed) {
    struct slice rest = input;
    struct file_store_record record = {0};
    if (input.length >= LENGTH_SIZE && little_endian_load32(input.data) == 0) {
        return FAILURE_MALFORMED;
    }
    /* The '-' of a deletion does not count towards the key's limit. */
    enum failure_code code = take_text(&rest, limits->key_bytes + 1, &record.key);
    if (code == FAILURE_NONE) {
        code = take_text(&rest, limits->value_bytes, &record.value);
    }
    if (code != FAILURE_NONE) {
        return code;
    }
    if (record.key.data[0] == REMOVAL_MARK) {
        record.is_removal = true;
        record.key = (struct slice){record.key.data + 1, record.key.length - 1};
        record.value = (struct slice){0};
    }
    *out_record = record;
    *out_consumed = input.length - rest.length;
    return FAILURE_NONE;
}

enum failure_code file_store_record_append(
    const struct file_store_record *record, struct bytes *out) {
    static const uint8_t removal_mark = REMOVAL_MARK;
    if (record->key.length == 0 || record->key.data[0] == REMOVAL_MARK) {
        return FAILURE_INVALID;
    }
    size_t mark_length = record->is_removal ? 1 : 0;
    if (record->key.length > UINT32_MAX - mark_length || record->value.length > UINT32_MAX) {
        return FAILURE_LIMIT;
    }
    uint8_t key_length[LENGTH_SIZE];
    uint8_t value_length[LENGTH_SIZE];
    little_endian_store32(key_length, (uint32_t)(record->key.length + mark_length));
    little_endian_store32(value_length, (uint32_t)record->value.length);
    size_t start = out->length;
    enum failure_code code = bytes_append(out, key_length, LENGTH_SIZE);
    if (code == FAILURE_NONE) {
        code = bytes_append(out, &removal_mark, mark_length);
    }
    if (code == FAILURE_NONE) {
        code = bytes_append(out, record->key.data, record->key.length);
    }
    if (code == FAILURE_NONE) {
        code = bytes_append(out, value_length, LENGTH_SIZE);
    }
    if (code == FAILURE_NONE) {
        code = bytes_append(out, record->value.data, record->value.length);
    }
    if (code != FAILURE_NONE) {
        out->length = start;
    }
    return code;
}
