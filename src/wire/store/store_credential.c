/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/store/store_credential.h"

#include <string.h>

/* Both labels have the same length, so that payloads have one form. */
#define LABEL_BYTES 24
#define CHALLENGE_BYTES (LABEL_BYTES + 2 * STORE_PROOF_NONCE_BYTES)
static const char labels[][LABEL_BYTES] = {
    [STORE_CREDENTIAL_OF_CLIENT] = "muster munge client    ",
    [STORE_CREDENTIAL_OF_SERVER] = "muster munge server    ",
};

#define LENGTH_BYTES 4
/* In front of a credential: the operation or the verdict, and the length. */
#define HEAD_BYTES (1 + LENGTH_BYTES)

static struct store_proof_step incomplete(size_t needed) {
    return (struct store_proof_step){.outcome = STORE_PROOF_INCOMPLETE, .needed = needed};
}

static struct store_proof_step fail(const char *reason) {
    return (struct store_proof_step){.outcome = STORE_PROOF_FAILED, .reason = reason};
}

static struct store_proof_step fail_for_now(const char *reason) {
    struct store_proof_step step = fail(reason);
    step.may_pass = true;
    return step;
}

void store_credential_payload(const struct store_proof *proof, struct slice job,
    enum store_credential_side side, struct bytes *out_payload) {
    size_t length =
        job.length < STORE_CREDENTIAL_JOB_LONGEST ? job.length : STORE_CREDENTIAL_JOB_LONGEST;
    bytes_clear(out_payload);
    (void)!bytes_append(out_payload, labels[side], LABEL_BYTES);
    (void)!bytes_append(out_payload, proof->client_nonce, STORE_PROOF_NONCE_BYTES);
    (void)!bytes_append(out_payload, proof->server_nonce, STORE_PROOF_NONCE_BYTES);
    if (side == STORE_CREDENTIAL_OF_SERVER) { /* the client does not know its address before */
        (void)!bytes_append(out_payload, proof->client_address, STORE_PROOF_ADDRESS_BYTES);
    }
    (void)!bytes_append(out_payload, job.data, length);
}

enum store_credential_verdict store_credential_judge(struct slice payload, struct slice expected) {
    bool is_of_challenge = payload.length >= CHALLENGE_BYTES &&
                           memcmp(payload.data, expected.data, CHALLENGE_BYTES) == 0;
    if (!is_of_challenge) {
        return STORE_CREDENTIAL_OTHER_CHALLENGE;
    }
    return slice_equals(payload, expected) ? STORE_CREDENTIAL_ACCEPTED : STORE_CREDENTIAL_OTHER_JOB;
}

/* A head, a credential, and so many bytes behind it. */
static struct store_proof_step take_presented(
    struct store_proof *proof, struct slice input, size_t behind) {
    if (input.length < HEAD_BYTES) {
        return incomplete(HEAD_BYTES);
    }
    size_t length = 0;
    for (size_t i = LENGTH_BYTES; i > 0; i--) {
        length = length << 8 | input.data[i];
    }
    if (length == 0 || length > STORE_CREDENTIAL_LONGEST) {
        return fail("a munge credential that is empty, or longer than 4096 bytes");
    }
    if (input.length < HEAD_BYTES + length + behind) {
        return incomplete(HEAD_BYTES + length + behind);
    }
    proof->stage = STORE_PROOF_STAGE_CHECKING;
    return (struct store_proof_step){.outcome = STORE_PROOF_ASKED,
        .consumed = HEAD_BYTES + length + behind,
        .presented = {input.data + HEAD_BYTES, length}};
}

/* Fails with a credential that is longer than the other side would take. */
static bool append_presented(uint8_t first, struct slice credential, struct bytes *reply) {
    uint8_t head[HEAD_BYTES] = {first};
    if (credential.length == 0 || credential.length > STORE_CREDENTIAL_LONGEST) {
        return false;
    }
    for (size_t i = 0; i < LENGTH_BYTES; i++) {
        head[1 + i] = (uint8_t)(credential.length >> 8 * i);
    }
    (void)!bytes_append(reply, head, sizeof head);
    (void)!bytes_append(reply, credential.data, credential.length);
    return true;
}

/* The server. */

static const char *const objections[STORE_CREDENTIAL_VERDICTS] = {
    [STORE_CREDENTIAL_OTHER_KEY] =
        "its munge credential is invalid here: its machine has another munge.key",
    [STORE_CREDENTIAL_OTHER_USER] = "its munge credential is another user's",
    [STORE_CREDENTIAL_OTHER_JOB] = "its munge credential is for a job with another --rdzv-id",
    [STORE_CREDENTIAL_OTHER_CHALLENGE] = "its munge credential was made for another connection",
    [STORE_CREDENTIAL_OLD] =
        "its munge credential has expired: the clocks of the two machines differ",
    [STORE_CREDENTIAL_FUTURE] =
        "its munge credential is from the future: the clocks of the two machines differ",
    [STORE_CREDENTIAL_USED] = "its munge credential was used before",
    [STORE_CREDENTIAL_UNCHECKED] = "munge cannot be asked here now; it may try again",
};

struct store_proof_step store_credential_take(struct store_proof *proof, struct slice input) {
    return take_presented(proof, input, 0);
}

struct store_proof_step store_credential_verdict_given(
    struct store_proof *proof, const struct store_credential_answer *answer, struct bytes *reply) {
    enum store_credential_verdict verdict = answer->verdict;
    if (verdict == STORE_CREDENTIAL_ACCEPTED &&
        !append_presented(STORE_CREDENTIAL_ACCEPTED, answer->credential, reply)) {
        verdict = STORE_CREDENTIAL_UNCHECKED;
    }
    if (verdict != STORE_CREDENTIAL_ACCEPTED) {
        uint8_t number = (uint8_t)verdict;
        (void)!bytes_append(reply, &number, 1);
        return fail(objections[verdict]);
    }
    (void)!bytes_append(reply, proof->client_address, STORE_PROOF_ADDRESS_BYTES);
    proof->stage = STORE_PROOF_STAGE_PROVEN;
    return (struct store_proof_step){.outcome = STORE_PROOF_DONE};
}

/* The client. */

static const char *const refusals[STORE_CREDENTIAL_VERDICTS] = {
    [STORE_CREDENTIAL_OTHER_KEY] = "munge there calls the credential of this node invalid; give "
                                   "both machines the same munge.key",
    [STORE_CREDENTIAL_OTHER_USER] =
        "it is another user's, says munge there; run all nodes as the same user",
    [STORE_CREDENTIAL_OTHER_JOB] =
        "it serves a job with another --rdzv-id; give all nodes the same one",
    [STORE_CREDENTIAL_OTHER_CHALLENGE] =
        "it got another credential than this node's: somebody is between the two",
    [STORE_CREDENTIAL_OLD] = "munge there calls the credential of this node expired; set the "
                             "clocks of both machines",
    [STORE_CREDENTIAL_FUTURE] = "munge there calls the credential of this node one of the future; "
                                "set the clocks of both machines",
    [STORE_CREDENTIAL_USED] =
        "it got the credential of this node before: somebody is between the two",
};

/* What is wrong with the server's own credential. */
static const char *const suspicions[STORE_CREDENTIAL_VERDICTS] = {
    [STORE_CREDENTIAL_OTHER_KEY] = "munge here calls its credential invalid; give both machines "
                                   "the same munge.key",
    [STORE_CREDENTIAL_OTHER_USER] =
        "it is another user's, says munge here; run all nodes as the same user",
    [STORE_CREDENTIAL_OTHER_JOB] =
        "it serves a job with another --rdzv-id; give all nodes the same one",
    [STORE_CREDENTIAL_OTHER_CHALLENGE] =
        "its munge credential was made for another connection: somebody is between the two",
    [STORE_CREDENTIAL_OLD] =
        "munge here calls its credential expired; set the clocks of both machines",
    [STORE_CREDENTIAL_FUTURE] =
        "munge here calls its credential one of the future; set the clocks of both machines",
    [STORE_CREDENTIAL_USED] = "its munge credential was used before: somebody is between the two",
};

static const char unanswered_here[] = "munge cannot be asked on this machine now";

static struct store_proof_step refused(uint8_t verdict) {
    if (verdict == STORE_CREDENTIAL_UNCHECKED) {
        return fail_for_now("munge cannot be asked there now");
    }
    return fail(verdict < STORE_CREDENTIAL_VERDICTS
                    ? refusals[verdict]
                    : "it does not accept the munge credential of this node");
}

static struct store_proof_step take_server(struct store_proof *proof, struct slice input) {
    struct store_proof_step step = take_presented(proof, input, STORE_PROOF_ADDRESS_BYTES);
    if (step.outcome == STORE_PROOF_ASKED) {
        memcpy(proof->client_address, step.presented.data + step.presented.length,
            STORE_PROOF_ADDRESS_BYTES);
    }
    return step;
}

struct store_proof_step store_credential_follow(struct store_proof *proof, struct slice input) {
    if (proof->stage == STORE_PROOF_STAGE_CHALLENGED) {
        if (input.length < STORE_PROOF_NONCE_BYTES) {
            return incomplete(STORE_PROOF_NONCE_BYTES);
        }
        memcpy(proof->server_nonce, input.data, STORE_PROOF_NONCE_BYTES);
        proof->stage = STORE_PROOF_STAGE_MAKING;
        return (struct store_proof_step){
            .outcome = STORE_PROOF_ASKED, .consumed = STORE_PROOF_NONCE_BYTES};
    }
    if (proof->stage != STORE_PROOF_STAGE_ANSWERED) {
        return fail("a part of a proof that was not its turn");
    }
    if (input.length == 0) {
        return incomplete(1);
    }
    return input.data[0] == STORE_CREDENTIAL_ACCEPTED ? take_server(proof, input)
                                                      : refused(input.data[0]);
}

struct store_proof_step store_credential_answered(
    struct store_proof *proof, const struct store_credential_answer *answer, struct bytes *reply) {
    if (answer->verdict == STORE_CREDENTIAL_UNCHECKED) {
        return fail_for_now(unanswered_here);
    }
    if (answer->verdict != STORE_CREDENTIAL_ACCEPTED) {
        return fail(suspicions[answer->verdict]);
    }
    if (proof->stage == STORE_PROOF_STAGE_CHECKING) {
        proof->stage = STORE_PROOF_STAGE_PROVEN;
        return (struct store_proof_step){.outcome = STORE_PROOF_DONE};
    }
    if (!append_presented(STORE_CREDENTIAL_OPERATION, answer->credential, reply)) {
        return fail_for_now(unanswered_here);
    }
    proof->stage = STORE_PROOF_STAGE_ANSWERED;
    return (struct store_proof_step){.outcome = STORE_PROOF_REPLIED};
}
