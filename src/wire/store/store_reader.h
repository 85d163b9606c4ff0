/* SPDX-License-Identifier: BSD-3-Clause */
/* What a store server reads from one connection: requests, and where the store wants one, parts of
 * the proof that the client has the job's token. Joins store_request_codec and store_proof, and
 * says what a client without proof may ask. The host sends replies and closes. */
#ifndef MUSTER_WIRE_STORE_STORE_READER_H
#define MUSTER_WIRE_STORE_STORE_READER_H

#include "wire/store/store_proof.h"
#include "wire/store/store_request_codec.h"

/* What a store guards; a zeroed struct guards nothing. */
struct store_gate {
    const struct store_key *key; /* of token or munge; NULL: nobody has to prove anything */
    struct slice guarded_prefix; /* of keys that need a proof; empty: everything does; borrowed */
};

/* The state of one connection. */
struct store_reader {
    struct store_request_decoder decoder;
    struct store_proof proof;
};

void store_reader_init(struct store_reader *reader, const struct store_limits *limits);
void store_reader_clear(struct store_reader *reader);

struct store_reading {
    struct store_decoded_request decoded;   /* as of store_request_decoder_next */
    bool is_request;                        /* else there is nothing to carry out */
    uint8_t reply[STORE_PROOF_REPLY_BYTES]; /* to be sent first, perhaps of no bytes */
    size_t reply_length;
    struct slice presented; /* not empty: the host has munge check this credential, and tells
                               store_credential_verdict_given; borrowed from the input */
};

/* As store_request_decoder_next; `consumed` and `needed` are always set. FAILURE_NONE without
 * `is_request`: a part of the proof was taken. FAILURE_PROTOCOL also for what a client without
 * proof may not ask: at its first byte, unless only some keys are guarded. */
__attribute__((warn_unused_result)) enum failure_code store_reader_next(struct store_reader *reader,
    const struct store_gate *gate, struct slice input, struct store_reading *out);

#endif
