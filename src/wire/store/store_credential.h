/* SPDX-License-Identifier: BSD-3-Clause */
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
#ifndef MUSTER_WIRE_STORE_STORE_CREDENTIAL_H
#define MUSTER_WIRE_STORE_STORE_CREDENTIAL_H

#include "wire/store/store_proof.h"

#define STORE_CREDENTIAL_OPERATION 0xf2

/* munge's text is about 300 bytes and four thirds of the payload. */
#define STORE_CREDENTIAL_LONGEST ((size_t)4096)
/* What the job is called; longer names are cut, on both sides alike. */
#define STORE_CREDENTIAL_JOB_LONGEST ((size_t)1024)

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

/* The server's side: the client's credential at the front of `input`. ASKED: the host checks
 * `presented`, and when it is right makes one of the server's own. */
struct store_proof_step store_credential_take(struct store_proof *proof, struct slice input);
/* … and then appends what is to be sent. DONE or FAILED. */
struct store_proof_step store_credential_verdict_given(
    struct store_proof *proof, const struct store_credential_answer *answer, struct bytes *reply);

/* The client's side, after HELLO: ASKED without `presented` (the host makes one of the client's
 * own) after the challenge, and with it after the server's verdict. */
struct store_proof_step store_credential_follow(struct store_proof *proof, struct slice input);
/* … and then appends what is to be sent. REPLIED, DONE or FAILED. */
struct store_proof_step store_credential_answered(
    struct store_proof *proof, const struct store_credential_answer *answer, struct bytes *reply);

#endif
