/* SPDX-License-Identifier: BSD-3-Clause */
/* Replies of PyTorch's TCPStore protocol, both ways: the server's encoder and the client's
 * incremental decoder. Replies carry no type: the client knows from its request what must come. */
#ifndef MUSTER_WIRE_STORE_REPLY_CODEC_H
#define MUSTER_WIRE_STORE_REPLY_CODEC_H

#include <stddef.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "core/store_effects.h"
#include "core/store_request.h"

/* Appends the reply's bytes. FAILURE_LIMIT at the buffer's ceiling, which leaves the buffer as it
 * was. */
__attribute__((warn_unused_result)) enum failure_code store_reply_encode(
    const struct store_reply *reply, struct bytes *out);
/* How many bytes store_reply_encode appends, known without doing it. */
size_t store_reply_encoded_size(const struct store_reply *reply);

/* What a client is ready to believe of a server. */
struct store_reply_limits {
    size_t blob_bytes;  /* one value or key */
    size_t reply_bytes; /* one whole reply */
};

#define STORE_REPLY_LIMITS_DEFAULT                                                                 \
    ((struct store_reply_limits){                                                                  \
        .blob_bytes = (size_t)256 << 20,                                                           \
        .reply_bytes = (size_t)1 << 30,                                                            \
    })

/* Where the decoding of one expected reply stands between two pieces of input. */
struct store_reply_decoder {
    struct store_reply_limits limits;
    enum store_operation operation; /* what was asked */
    size_t asked;                   /* how many keys were named in it */
    size_t count;                   /* blobs of the list that is coming */
    size_t seen;                    /* of these, already understood */
    size_t scanned;                 /* bytes of the reply already understood */
    struct slice *blobs;            /* the list of the last reply */
    size_t blob_capacity;
};

/* What one call found; only what belongs to its result is set. */
struct store_decoded_reply {
    struct store_reply reply; /* borrows from the input and from the decoder's list */
    size_t consumed;          /* bytes of the input the reply took */
    size_t needed; /* FAILURE_INCOMPLETE: the least input another call makes sense with */
    char reason[STORE_REASON_SIZE]; /* other failures: what was wrong */
};

/* Copies the limits. */
void store_reply_decoder_init(
    struct store_reply_decoder *decoder, const struct store_reply_limits *limits);
void store_reply_decoder_clear(struct store_reply_decoder *decoder);

/* The next reply to come answers this request. */
void store_reply_decoder_expect(
    struct store_reply_decoder *decoder, const struct store_request *request);

/* Looks for the expected reply at the front of `input`, in the manner of
 * store_request_decoder_next. An operation without a reply gives STORE_REPLY_NONE and consumes
 * nothing. After FAILURE_NONE the same kind of reply is expected again until told otherwise (a
 * cancelled WAIT may be answered twice: STORE_STOP_WAITING of the wait, then
 * STORE_WAIT_CANCELLED).
 * FAILURE_INCOMPLETE: `needed` is set. FAILURE_LIMIT: more than the client accepts;
 * FAILURE_PROTOCOL: no reply to this request; for both `reason` is set. */
__attribute__((warn_unused_result)) enum failure_code store_reply_decoder_next(
    struct store_reply_decoder *decoder, struct slice input, struct store_decoded_reply *out);

#endif
