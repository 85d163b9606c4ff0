/* SPDX-License-Identifier: BSD-3-Clause */
/* Replies of PyTorch's TCPStore protocol, both ways: the server's encoder and the client's
 * incremental decoder. A reply carries no type: the client knows from its request which reply must
 * come. */
#ifndef MUSTER_WIRE_STORE_STORE_REPLY_CODEC_H
#define MUSTER_WIRE_STORE_STORE_REPLY_CODEC_H

#include <stddef.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "core/store/store_request.h"

/* Appends the reply's bytes. FAILURE_LIMIT at the buffer's ceiling; the buffer is then
 * unchanged. */
__attribute__((warn_unused_result)) enum failure_code store_reply_encode(
    const struct store_reply *reply, struct bytes *out);
/* The number of bytes that store_reply_encode appends, computed without encoding. */
size_t store_reply_encoded_size(const struct store_reply *reply);

/* The largest replies that a client accepts from a server. */
struct store_reply_limits {
    size_t blob_bytes;  /* one value or key */
    size_t reply_bytes; /* one whole reply */
};

#define STORE_REPLY_LIMITS_DEFAULT                                                                 \
    ((struct store_reply_limits){                                                                  \
        .blob_bytes = (size_t)256 << 20,                                                           \
        .reply_bytes = (size_t)1 << 30,                                                            \
    })

/* The state of decoding one expected reply, kept between two pieces of input. */
struct store_reply_decoder {
    struct store_reply_limits limits;
    enum store_operation operation; /* the request's operation */
    size_t asked;                   /* the number of keys in the request */
    size_t count;                   /* number of blobs in the reply's list */
    size_t seen;                    /* number of those blobs already scanned */
    size_t scanned;                 /* bytes of the reply already scanned */
    struct slice *blobs;            /* the list of the last reply */
    size_t blob_capacity;
};

/* The result of one call. Only the fields that belong to the result are set. */
struct store_decoded_reply {
    struct store_reply reply; /* borrows from the input and from the decoder's list */
    size_t consumed;          /* bytes of the input that belong to the reply */
    size_t needed;            /* FAILURE_INCOMPLETE: the next call needs at least this much input */
    char reason[STORE_REASON_SIZE]; /* other failures: what was wrong */
};

/* Copies the limits. */
void store_reply_decoder_init(
    struct store_reply_decoder *decoder, const struct store_reply_limits *limits);
void store_reply_decoder_clear(struct store_reply_decoder *decoder);

/* Says which request the next reply answers. */
void store_reply_decoder_expect(
    struct store_reply_decoder *decoder, const struct store_request *request);

/* Looks for the expected reply at the front of `input`, which works as for
 * store_request_decoder_next. An operation without a reply gives STORE_REPLY_NONE and consumes
 * nothing. After FAILURE_NONE the same kind of reply is expected again, until
 * store_reply_decoder_expect says otherwise: a cancelled WAIT may be answered twice, first by
 * STORE_STOP_WAITING and then by STORE_WAIT_CANCELLED. FAILURE_INCOMPLETE sets `needed`.
 * FAILURE_LIMIT (larger than the client accepts) and FAILURE_PROTOCOL (not a reply to this request)
 * set `reason`. */
__attribute__((warn_unused_result)) enum failure_code store_reply_decoder_next(
    struct store_reply_decoder *decoder, struct slice input, struct store_decoded_reply *out);

#endif
