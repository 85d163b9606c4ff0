/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests of PyTorch's TCPStore protocol, both ways: the server's incremental decoder and the
 * client's encoder. A request is one operation byte and its operands, integers little endian, blobs
 * as a 64-bit length and that many bytes; there is no request length, so the decoder is what finds
 * the end (c10d/store/TCPStoreLibUvBackend.cpp reads the same grammar). Not here: what requests
 * mean (core/store_table) and replies (wire/store_reply_codec). */
#ifndef MUSTER_WIRE_STORE_REQUEST_CODEC_H
#define MUSTER_WIRE_STORE_REQUEST_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "core/store_effects.h"
#include "core/store_limits.h"
#include "core/store_request.h"

/* The number VALIDATE carries (detail::validationMagicNumber in TCPStoreBackend.hpp). */
#define STORE_VALIDATE_MAGIC 0x3C85F7CEU

/* Where one connection's decoding stands between two pieces of input: how much of the request at
 * the front has been looked at, so that no byte is parsed twice however small the pieces are. */
struct store_request_decoder {
    struct store_limits limits;
    bool is_validated;   /* the handshake has been seen */
    uint8_t field;       /* operand the scan has reached */
    size_t scanned;      /* bytes of the current request already understood */
    size_t blobs_left;   /* blobs the current list operand still lacks */
    size_t count;        /* keys of the current list operand */
    struct slice *blobs; /* the lists of the last request */
    size_t blob_capacity;
};

/* What one call found; only what belongs to its result is set. */
struct store_decoded_request {
    struct store_request request; /* borrows from the input and from the decoder's lists */
    size_t consumed;              /* bytes of the input the request took */
    size_t needed; /* FAILURE_INCOMPLETE: the least input another call makes sense with */
    char reason[STORE_REASON_SIZE]; /* other failures: what was wrong, for the log */
};

/* Copies the limits. */
void store_request_decoder_init(
    struct store_request_decoder *decoder, const struct store_limits *limits);
void store_request_decoder_clear(struct store_request_decoder *decoder);

/* Looks for one request at the front of `input`, which holds everything received and not consumed:
 * after FAILURE_INCOMPLETE call again with the same bytes (anywhere in memory) and more after them;
 * after FAILURE_NONE drop `consumed` bytes once the request has been carried out, and call again.
 * The request is valid until the next call and as long as the input stays where it is.
 *
 * Nothing is allocated until the whole request is there; what a client announces is checked against
 * the limits first. The first request must be VALIDATE with the magic.
 * FAILURE_INCOMPLETE: `needed` is set (it may be large: it is what the client announced).
 * FAILURE_LIMIT, FAILURE_PROTOCOL: `reason` is set; the connection must be closed. */
__attribute__((warn_unused_result)) enum failure_code store_request_decoder_next(
    struct store_request_decoder *decoder, struct slice input, struct store_decoded_request *out);

/* Appends the request's bytes; for VALIDATE the magic is put in. FAILURE_LIMIT at the buffer's
 * ceiling, which leaves the buffer as it was. */
__attribute__((warn_unused_result)) enum failure_code store_request_encode(
    const struct store_request *request, struct bytes *out);
/* How many bytes store_request_encode appends. */
size_t store_request_encoded_size(const struct store_request *request);

#endif
