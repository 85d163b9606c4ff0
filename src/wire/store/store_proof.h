/* SPDX-License-Identifier: BSD-3-Clause */
/* How a client and a server of a store prove to each other that both hold the job's token, without
 * sending it: states and bytes of both sides. Each side draws a nonce, and sends a code
 * (HMAC-SHA256 under the token) of a label, the client's nonce and the server's. The client goes
 * first, so that a stranger who merely connects gets no code at which to try guessed tokens.
 *
 *     client                            server
 *     VALIDATE, PING with OFFERED ->
 *                                    <- PING's answer: WANTED instead of the same number
 *     HELLO, nonce                ->
 *                                    <- nonce
 *     PROOF, code of the client   ->
 *                                    <- 1, code of the server, the client's address as the server
 *                                       sees it; or 0, and the connection ends
 *
 * A server without a token repeats OFFERED, as PyTorch's does. PyTorch's clients send the number of
 * their process there, which is less than 2^22, so they are not told apart from clients without a
 * token. HELLO and PROOF are sent only to a server that said WANTED. Nothing is encrypted, and what
 * follows the proof carries no codes. The host computes and draws.
 *
 * The two sides may use credentials of munge instead of a token, after the same challenge. */
#ifndef MUSTER_WIRE_STORE_STORE_PROOF_H
#define MUSTER_WIRE_STORE_STORE_PROOF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "core/store/store_request.h"

#define STORE_PROOF_OFFERED 0x4d757374U
#define STORE_PROOF_WANTED 0x928a8c8bU /* every bit is the other */
#define STORE_PROOF_WANTED_CREDENTIAL 0x6d756e67U

#define STORE_PROOF_NONCE_BYTES 32
#define STORE_PROOF_CODE_BYTES 32
#define STORE_PROOF_ADDRESS_BYTES 16 /* an IPv4 address in the form of IPv6 */
/* The most that one side sends at a time. */
#define STORE_PROOF_REPLY_BYTES (1 + STORE_PROOF_CODE_BYTES + STORE_PROOF_ADDRESS_BYTES)

enum store_key_kind {
    STORE_KEY_TOKEN,
    STORE_KEY_MUNGE,
};

/* What can be done with the token, or with munge. Each function returns false when it cannot. */
struct store_key {
    /* HMAC-SHA256 of the message under the token. */
    bool (*authenticate)(
        void *context, struct slice message, uint8_t out_code[static STORE_PROOF_CODE_BYTES]);
    /* Whether two codes are equal, in a time that does not depend on where they differ. */
    bool (*equals)(void *context, const uint8_t *left, const uint8_t *right);
    /* A number that nobody can foresee. */
    bool (*draw)(void *context, uint8_t out_nonce[static STORE_PROOF_NONCE_BYTES]);
    void *context;
    enum store_key_kind kind; /* with munge only `draw` is used here */
};

enum store_proof_outcome {
    STORE_PROOF_NONE,       /* no part of a proof: for the request decoder (server only) */
    STORE_PROOF_INCOMPLETE, /* `needed` bytes of input are wanted */
    STORE_PROOF_REPLIED,    /* send `reply`; it goes on */
    STORE_PROOF_DONE,       /* send `reply` (it may be empty); the other side has proved itself */
    STORE_PROOF_ASKED,      /* the host asks munge; nothing may come before it answers */
    STORE_PROOF_FAILED, /* send `reply` (it may be empty) and close, for this reason; nothing was
                           consumed */
};

struct store_proof_step {
    enum store_proof_outcome outcome;
    size_t consumed; /* of the input: 0 unless REPLIED, DONE or ASKED */
    size_t needed;   /* 0 unless INCOMPLETE */
    uint8_t reply[STORE_PROOF_REPLY_BYTES];
    size_t reply_length;
    struct slice presented; /* ASKED: the other side's credential; borrowed from the input */
    const char *reason;
    bool may_pass; /* FAILED: another attempt may succeed */
};

enum store_proof_stage {
    STORE_PROOF_STAGE_NEW,        /* server: nothing yet; client: HELLO is to be sent */
    STORE_PROOF_STAGE_CHALLENGED, /* the server's nonce is out; client: HELLO is out */
    STORE_PROOF_STAGE_MAKING,     /* client: munge makes its credential */
    STORE_PROOF_STAGE_ANSWERED,   /* client: its code or its credential is out */
    STORE_PROOF_STAGE_CHECKING,   /* munge checks the other side's credential */
    STORE_PROOF_STAGE_PROVEN,
};

/* One side of one connection. A zeroed struct is at the beginning. */
struct store_proof {
    enum store_proof_stage stage;
    uint8_t client_nonce[STORE_PROOF_NONCE_BYTES];
    uint8_t server_nonce[STORE_PROOF_NONCE_BYTES];
    /* The client's address as the server sees it. The server's host sets it at the beginning; the
     * client has it when the server has proved itself. It is a part of what the server proves. */
    uint8_t client_address[STORE_PROOF_ADDRESS_BYTES];
};

/* The server's side, while the client has not proved itself: `input` begins with a request. Where
 * `guarded_prefix` is empty the first byte of a request tells whether it may be made at all
 * (FAILED: it may not); otherwise store_proof_objection tells it of the whole request. */
struct store_proof_step store_proof_serve(struct store_proof *proof, const struct store_key *key,
    struct slice guarded_prefix, struct slice input);

/* The client's side: the first step, which needs no input, … */
struct store_proof_step store_proof_begin(struct store_proof *proof, const struct store_key *key);
/* … and what follows with the server's replies. */
struct store_proof_step store_proof_continue(
    struct store_proof *proof, const struct store_key *key, struct slice input);

/* What a server that has a key answers to a PING with this number. */
uint32_t store_proof_ping_answer(
    const struct store_proof *proof, const struct store_key *key, uint32_t nonce);

/* Whether a connection without proof may not make this request: the reason, or NULL when it may.
 * Where `guarded_prefix` is empty it may do nothing but the handshake; otherwise everything but use
 * keys that begin so (raw, with their leading '/'). */
const char *store_proof_objection(const struct store_request *request, struct slice guarded_prefix);

/* How a client and a server of a store prove to each other by munge that both are the same user's,
 * and of the same job: the bytes of both sides. munge's daemons, which share a key, make and check
 * credentials: a text that holds a payload and says which user asked for it. The challenge is that
 * of wire/store/store_proof; then both sides send a credential whose payload names its side, both
 * nonces and the job; the server's also the client's address. So a credential is of no use on any
 * other connection, nor in the other direction.
 *
 *     client                                      server
 *     VALIDATE, PING with OFFERED              ->
 *                                              <- PING's answer: WANTED_CREDENTIAL
 *     HELLO, nonce                             ->
 *                                              <- nonce
 *     CREDENTIAL, length, client's credential  ->
 *                                              <- 0, length, server's credential, the client's
 *                                                 address as the server sees it; or another
 *                                                 verdict, and the connection ends
 *
 * munge is asked by the host, for which each side waits: STORE_PROOF_ASKED, and then an answer. */

/* munge's text is about 300 bytes and four thirds of the payload. */
#define STORE_CREDENTIAL_LONGEST ((size_t)4096)

/* What one side says of the other's credential; the numbers are sent. */
enum store_credential_verdict {
    STORE_CREDENTIAL_ACCEPTED,
    STORE_CREDENTIAL_OTHER_KEY,       /* munge's keys differ, or it was changed on its way */
    STORE_CREDENTIAL_OTHER_USER,      /* it is another user's */
    STORE_CREDENTIAL_OTHER_JOB,       /* it was made for another job */
    STORE_CREDENTIAL_OTHER_CHALLENGE, /* it was made for another connection, or the other side */
    STORE_CREDENTIAL_OLD,             /* made too long ago, by the clock of the one who checks */
    STORE_CREDENTIAL_FUTURE,          /* made in the future, by that clock */
    STORE_CREDENTIAL_USED,            /* checked before */
    STORE_CREDENTIAL_UNCHECKED,       /* munge could not be asked, which may pass */
};
#define STORE_CREDENTIAL_VERDICTS 9

enum store_credential_side {
    STORE_CREDENTIAL_OF_CLIENT,
    STORE_CREDENTIAL_OF_SERVER,
};

/* What the host has found out. */
struct store_credential_answer {
    enum store_credential_verdict verdict; /* UNCHECKED also when none could be made */
    struct slice credential;               /* of this side's own, if one was asked for */
};

/* Replaces `out_payload` by what the credential of this side has to say. */
void store_credential_payload(const struct store_proof *proof, struct slice job,
    enum store_credential_side side, struct bytes *out_payload);

/* What a credential is worth whose payload is this one, where munge vouches for it and for its
 * user. */
enum store_credential_verdict store_credential_judge(struct slice payload, struct slice expected);
/* … and then appends what is to be sent. DONE or FAILED. */
struct store_proof_step store_credential_verdict_given(
    struct store_proof *proof, const struct store_credential_answer *answer, struct bytes *reply);
/* … and then appends what is to be sent. REPLIED, DONE or FAILED. */
struct store_proof_step store_credential_answered(
    struct store_proof *proof, const struct store_credential_answer *answer, struct bytes *reply);

#endif
