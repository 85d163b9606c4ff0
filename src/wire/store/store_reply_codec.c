/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/store/store_reply_codec.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/memory.h"

#define LENGTH_BYTES 8
#define KEPT_BLOBS 64 /* lists up to this long keep their memory for the next reply */

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

static uint8_t *write_blob(uint8_t *position, struct slice blob) {
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
        (void)write_blob(position, reply->blob);
        break;
    case STORE_REPLY_KEYS:
    case STORE_REPLY_BLOBS:
        if (reply->kind == STORE_REPLY_KEYS) {
            position = write_integer(position, reply->list.count);
        }
        for (size_t i = 0; i < reply->list.count; i++) {
            position = write_blob(position, reply->list.items[i]);
        }
        break;
    case STORE_REPLY_POP:
        position = write_integer(position, (uint64_t)reply->pop.length);
        if (reply->pop.length > 0) {
            (void)write_blob(position, reply->pop.front);
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
    if (decoder->blob_capacity > KEPT_BLOBS) {
        free(decoder->blobs);
        decoder->blobs = NULL;
        decoder->blob_capacity = 0;
    }
}

static enum failure_code refuse_size(
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
static enum failure_code require(const struct store_reply_decoder *decoder, struct slice input,
    uint64_t length, struct store_decoded_reply *out) {
    if (length > decoder->limits.reply_bytes - decoder->scanned) {
        return refuse_size(decoder, out);
    }
    if (input.length - decoder->scanned < length) {
        out->needed = decoder->scanned + (size_t)length;
        return FAILURE_INCOMPLETE;
    }
    return FAILURE_NONE;
}

/* Scans one blob. */
static enum failure_code scan_blob(struct store_reply_decoder *decoder, struct slice input,
    struct slice *blob, struct store_decoded_reply *out) {
    enum failure_code code = require(decoder, input, LENGTH_BYTES, out);
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
    code = require(decoder, input, LENGTH_BYTES + length, out);
    if (code == FAILURE_NONE) {
        *blob = (struct slice){input.data + decoder->scanned + LENGTH_BYTES, (size_t)length};
        decoder->scanned += LENGTH_BYTES + (size_t)length;
    }
    return code;
}

static enum failure_code scan_integer(struct store_reply_decoder *decoder, struct slice input,
    uint64_t *value, struct store_decoded_reply *out) {
    enum failure_code code = require(decoder, input, 8, out);
    if (code == FAILURE_NONE) {
        *value = little_endian_load64(input.data + decoder->scanned);
        decoder->scanned += 8;
    }
    return code;
}

static enum failure_code decode_byte(
    struct store_reply_decoder *decoder, struct slice input, struct store_decoded_reply *out) {
    enum failure_code code = require(decoder, input, 1, out);
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
    enum failure_code code = require(decoder, input, 4, out);
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
    code = length > 0 ? scan_blob(decoder, input, &front, out) : FAILURE_NONE;
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
        enum failure_code code = scan_blob(decoder, input, &blob, out);
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
            return refuse_size(decoder, out);
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
        code = scan_blob(decoder, input, &blob, out);
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
