/* SPDX-License-Identifier: BSD-3-Clause */
/* The bytes of PyTorch's stores, both ways: requests and replies of the TCPStore, and the
 * records of a FileStore's file. */
#ifndef MUSTER_WIRE_STORE_STORE_CODEC_H
#define MUSTER_WIRE_STORE_STORE_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/failure.h"
#include "base/text.h"
#include "core/store/file_store_contents.h"
#include "core/store/store_request.h"
#include "wire/store/store_proof.h"

/* Requests of PyTorch's TCPStore protocol, both ways: the server's incremental decoder and the
 * client's encoder. A request is one operation byte and its operands. Integers are little endian; a
 * blob is a 64-bit length and that many bytes. A request does not carry its own length, so the
 * decoder must find its end (c10d/store/TCPStoreLibUvBackend.cpp reads the same grammar). The
 * meaning of requests is in core/store/store_table. */

/* A store request together with the keys and values it borrows, built piece by piece. The caller
 * decides what is asked; this module fills the fields that the operation needs. */

/* A zeroed struct is valid and empty. */
struct owned_request {
    struct store_request request; /* valid after owned_request_finish; its keys are complete, send
                                     them as they are */
    struct text_list keys;
    struct text_list values;
    struct bytes expected; /* COMPARE_SET: any bytes; empty: the key must not exist yet */
    struct slice *key_slices;
    struct slice *value_slices;
};

/* Makes the request of the keys and values added so far; there must be at least one key. `number`
 * is for ADD. After this call nothing may be added. */
void owned_request_finish(
    struct owned_request *request, enum store_operation operation, int64_t number);
void owned_request_clear(struct owned_request *request);

/* The state of decoding on one connection, kept between two pieces of input. It records how much of
 * the current request has been scanned, so that no byte is parsed twice even if the pieces are
 * small. */
struct store_request_decoder {
    struct store_limits limits;
    bool is_validated;   /* the handshake has been seen, or has not to be */
    bool is_old;         /* a client of PyTorch 2.0 or older, which has no handshake */
    uint8_t operation;   /* of the current request */
    uint8_t field;       /* operand that the scan has reached */
    size_t scanned;      /* bytes of the current request already scanned */
    size_t blobs_left;   /* blobs of the current list operand not yet scanned */
    size_t count;        /* keys of the current list operand */
    struct slice *blobs; /* the lists of the last request */
    size_t blob_capacity;
};

/* The result of one call. Only the fields that belong to the result are set. */
struct store_decoded_request {
    struct store_request request; /* borrows from the input and from the decoder's lists */
    size_t consumed;              /* bytes of the input that belong to the request */
    size_t needed; /* FAILURE_INCOMPLETE: the next call needs at least this much input */
    char reason[STORE_REASON_SIZE]; /* other failures: what was wrong, for the log */
};

/* Copies the limits. */
void store_request_decoder_init(
    struct store_request_decoder *decoder, const struct store_limits *limits);
void store_request_decoder_clear(struct store_request_decoder *decoder);

/* Looks for one request at the front of `input`, which holds every byte received and not yet
 * consumed. After FAILURE_INCOMPLETE call again with the same bytes (at any address) and more after
 * them. After FAILURE_NONE carry out the request, drop `consumed` bytes, and call again. The
 * request is valid until the next call, and only while the input stays at its address.
 *
 * Nothing is allocated until the whole request is there. Sizes that a client announces are checked
 * against the limits first. The first request must be VALIDATE with the magic number, or one of
 * PyTorch 2.0 or older: there the same requests have other numbers (TCPStore.cpp of its releases).
 * FAILURE_INCOMPLETE sets `needed`, which may be large because the client announced it.
 * FAILURE_LIMIT and FAILURE_PROTOCOL set `reason`; the caller must then close the connection. */
__attribute__((warn_unused_result)) enum failure_code store_request_decoder_next(
    struct store_request_decoder *decoder, struct slice input, struct store_decoded_request *out);

/* Appends the request's bytes; VALIDATE gets its magic number here. FAILURE_LIMIT at the buffer's
 * ceiling; the buffer is then unchanged. */
__attribute__((warn_unused_result)) enum failure_code store_request_encode(
    const struct store_request *request, struct bytes *out);

/* What a store server reads from one connection: requests, and where the store wants one, parts of
 * the proof that the client has the job's token. Joins the decoder of requests and store_proof, and
 * says what a client without proof may ask. The host sends replies and closes. */

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

/* Replies of PyTorch's TCPStore protocol, both ways: the server's encoder and the client's
 * incremental decoder. A reply carries no type: the client knows from its request which reply must
 * come. */

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

/* Records of PyTorch's FileStore (c10d/FileStore.cpp) and their bytes, both ways. The file is a
 * sequence of records: a 32-bit length and the key, then a 32-bit length and the value. Integers
 * are little endian, as on the machines PyTorch runs on. A '-' in front of a key deletes the key.
 * Keys of users begin with '/'; PyTorch's own keys ("refcount/", "cleanup/") do not. Later records
 * override earlier ones. host/store/store_access reads the file. */

/* Reads one record at the front of `input`, which holds every byte read and not yet consumed. The
 * record borrows from it. FAILURE_INCOMPLETE: the end of the record has not been read yet.
 * FAILURE_MALFORMED: a length is beyond the limits, or a key is empty, which PyTorch never writes.
 * Either the file is no FileStore, or a writer died in the middle of a record and others wrote
 * behind it. */
__attribute__((warn_unused_result)) enum failure_code file_store_record_read(struct slice input,
    const struct file_store_limits *limits, struct file_store_record *out_record,
    size_t *out_consumed);

/* Appends the record's bytes. FAILURE_LIMIT at the buffer's ceiling and for lengths beyond 32 bits.
 * FAILURE_INVALID for a key that readers would understand as something else: an empty key, or one
 * that begins with '-'. On failure the buffer is as it was. */
__attribute__((warn_unused_result)) enum failure_code file_store_record_append(
    const struct file_store_record *record, struct bytes *out);

#endif
