/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/store/store_request_codec.h"

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
#define KEPT_BLOBS 64 /* lists up to this long keep their memory for the next request */

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
static enum failure_code require(const struct store_request_decoder *decoder, struct slice input,
    size_t length, size_t following, struct store_decoded_request *out) {
    if (input.length - decoder->scanned >= length) {
        return FAILURE_NONE;
    }
    out->needed = decoder->scanned + length + following;
    return FAILURE_INCOMPLETE;
}

static enum failure_code refuse_size(struct store_decoded_request *out, uint8_t operation,
    const char *what, uint64_t size, size_t limit) {
    (void)snprintf(out->reason, sizeof out->reason, "%s: %s of %" PRIu64 ", the limit is %zu",
        store_operation_name((enum store_operation)operation), what, size, limit);
    return FAILURE_LIMIT;
}

/* Scans one blob. At least `following` more bytes come after it within the request. */
static enum failure_code scan_blob(struct store_request_decoder *decoder, struct slice input,
    bool is_key, size_t following, struct store_decoded_request *out) {
    enum failure_code code = require(decoder, input, LENGTH_BYTES, following, out);
    if (code != FAILURE_NONE) {
        return code;
    }
    uint64_t length = little_endian_load64(input.data + decoder->scanned);
    size_t limit = is_key ? decoder->limits.key_bytes : decoder->limits.value_bytes;
    if (length > limit) {
        return refuse_size(
            out, decoder->operation, is_key ? "a key length" : "a value length", length, limit);
    }
    code = require(decoder, input, LENGTH_BYTES + (size_t)length, following, out);
    if (code == FAILURE_NONE) {
        decoder->scanned += LENGTH_BYTES + (size_t)length;
    }
    return code;
}

static enum failure_code scan_count(struct store_request_decoder *decoder, struct slice input,
    bool is_pairs, struct store_decoded_request *out) {
    enum failure_code code = require(decoder, input, LENGTH_BYTES, 0, out);
    if (code != FAILURE_NONE) {
        return code;
    }
    uint64_t count = little_endian_load64(input.data + decoder->scanned);
    if (count > decoder->limits.keys_per_request) {
        return refuse_size(
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
        enum failure_code code = scan_blob(decoder, input, is_key, following, out);
        size_t least = (code == FAILURE_INCOMPLETE ? out->needed : decoder->scanned + following);
        if (code != FAILURE_LIMIT && least > decoder->limits.request_bytes) {
            return refuse_size(
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
    enum failure_code code = require(decoder, input, length, 0, out);
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
        return scan_blob(decoder, input, true, 0, out);
    case STORE_OPERAND_VALUE:
    case STORE_OPERAND_EXPECTED:
        return scan_blob(decoder, input, false, 0, out);
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
    if (decoder->blob_capacity > KEPT_BLOBS) {
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

static uint8_t *write_blob(uint8_t *position, struct slice blob) {
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
        return write_blob(position, request->key);
    case STORE_OPERAND_VALUE:
        return write_blob(position, request->value);
    case STORE_OPERAND_EXPECTED:
        return write_blob(position, request->expected);
    case STORE_OPERAND_KEYS:
    case STORE_OPERAND_PAIRS:
        for (size_t i = 0; i < request->count; i++) {
            position = write_blob(position, request->keys[i]);
            if (operand == STORE_OPERAND_PAIRS) {
                position = write_blob(position, request->values[i]);
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
