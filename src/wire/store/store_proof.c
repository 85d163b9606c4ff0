/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/store/store_proof.h"

#include <string.h>

#define STORE_CREDENTIAL_OPERATION 0xf2

/* What the job is called; longer names are cut, on both sides alike. */
#define STORE_CREDENTIAL_JOB_LONGEST ((size_t)1024)

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

/* munge reads up to a NUL, and does not see what stands behind it. */
static bool is_text(const uint8_t *data, size_t length) {
    size_t i = 0;
    while (i < length && data[i] > ' ' && data[i] <= '~') {
        i++;
    }
    return i == length;
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
    if (!is_text(input.data + HEAD_BYTES, length)) {
        return fail("a munge credential that is no word of printable characters");
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

/* The server's side: the client's credential at the front of `input`. ASKED: the host checks
 * `presented`, and when it is right makes one of the server's own. */
static struct store_proof_step store_credential_take(
    struct store_proof *proof, struct slice input) {
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

/* The client's side, after HELLO: ASKED without `presented` (the host makes one of the client's
 * own) after the challenge, and with it after the server's verdict. */
static struct store_proof_step store_credential_follow(
    struct store_proof *proof, struct slice input) {
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

/* Proof. */

/* Operations far from PyTorch's, which are counted from 0. */
#define OPERATION_HELLO 0xf0
#define OPERATION_PROOF 0xf1

#define HELLO_BYTES (1 + STORE_PROOF_NONCE_BYTES)
#define PROOF_BYTES (1 + STORE_PROOF_CODE_BYTES)
static const char client_label[LABEL_BYTES] = "muster job token client";
static const char server_label[LABEL_BYTES] = "muster job token server";

static const char no_numbers[] = "no random numbers can be drawn here";
static const char no_codes[] = "no codes can be computed here";

static struct store_proof_step step_of(enum store_proof_outcome outcome, size_t consumed) {
    return (struct store_proof_step){.outcome = outcome, .consumed = consumed};
}

static bool compute(const struct store_proof *proof, const struct store_key *key,
    const char label[static LABEL_BYTES], uint8_t out_code[static STORE_PROOF_CODE_BYTES]) {
    uint8_t message[LABEL_BYTES + 2 * STORE_PROOF_NONCE_BYTES + STORE_PROOF_ADDRESS_BYTES] = {0};
    size_t challenge_length = LABEL_BYTES + 2 * STORE_PROOF_NONCE_BYTES;
    memcpy(message, label, LABEL_BYTES);
    memcpy(message + LABEL_BYTES, proof->client_nonce, STORE_PROOF_NONCE_BYTES);
    memcpy(message + LABEL_BYTES + STORE_PROOF_NONCE_BYTES, proof->server_nonce,
        STORE_PROOF_NONCE_BYTES);
    if (label == server_label) { /* the client does not know its address yet */
        memcpy(message + challenge_length, proof->client_address, STORE_PROOF_ADDRESS_BYTES);
    }
    return key->authenticate(key->context, (struct slice){message, sizeof message}, out_code);
}

/* Whether `code` is that of the other side. */
static bool is_right(const struct store_proof *proof, const struct store_key *key,
    const char label[static LABEL_BYTES], const uint8_t *code) {
    uint8_t expected[STORE_PROOF_CODE_BYTES];
    return compute(proof, key, label, expected) && key->equals(key->context, expected, code);
}

/* The server. */

static struct store_proof_step challenge(
    struct store_proof *proof, const struct store_key *key, const uint8_t *client_nonce) {
    if (!key->draw(key->context, proof->server_nonce)) {
        return fail(no_numbers);
    }
    memcpy(proof->client_nonce, client_nonce, STORE_PROOF_NONCE_BYTES);
    proof->stage = STORE_PROOF_STAGE_CHALLENGED;
    struct store_proof_step step = step_of(STORE_PROOF_REPLIED, HELLO_BYTES);
    memcpy(step.reply, proof->server_nonce, STORE_PROOF_NONCE_BYTES);
    step.reply_length = STORE_PROOF_NONCE_BYTES;
    return step;
}

static struct store_proof_step check_client(
    struct store_proof *proof, const struct store_key *key, const uint8_t *code) {
    struct store_proof_step step = step_of(STORE_PROOF_DONE, PROOF_BYTES);
    step.reply[0] = 1;
    step.reply_length = STORE_PROOF_REPLY_BYTES;
    memcpy(
        step.reply + 1 + STORE_PROOF_CODE_BYTES, proof->client_address, STORE_PROOF_ADDRESS_BYTES);
    if (!is_right(proof, key, client_label, code)) {
        step = fail("its job token is not the one of this store");
        step.reply_length = 1;
    } else if (!compute(proof, key, server_label, step.reply + 1)) {
        step = fail(no_codes);
    } else {
        proof->stage = STORE_PROOF_STAGE_PROVEN;
    }
    return step;
}

static const char *objection_to(uint8_t operation, struct slice guarded_prefix) {
    bool is_free = operation == STORE_VALIDATE || operation == STORE_PING;
    return is_free || guarded_prefix.length > 0
               ? NULL
               : "asked for something without having proved that it has the job's token, or its "
                 "user by munge (--auth none on all nodes would let nodes of torchrun in)";
}

struct store_proof_step store_proof_serve(struct store_proof *proof, const struct store_key *key,
    struct slice guarded_prefix, struct slice input) {
    if (input.length == 0) {
        return incomplete(1);
    }
    bool is_munge = key->kind == STORE_KEY_MUNGE;
    bool is_hello = input.data[0] == OPERATION_HELLO;
    if (!is_hello && input.data[0] != (is_munge ? STORE_CREDENTIAL_OPERATION : OPERATION_PROOF)) {
        const char *objection = objection_to(input.data[0], guarded_prefix);
        return objection == NULL ? step_of(STORE_PROOF_NONE, 0) : fail(objection);
    }
    size_t length = is_hello ? HELLO_BYTES : PROOF_BYTES;
    if (proof->stage != (is_hello ? STORE_PROOF_STAGE_NEW : STORE_PROOF_STAGE_CHALLENGED)) {
        return fail("a part of a proof that was not its turn");
    }
    if (is_munge && !is_hello) {
        return store_credential_take(proof, input);
    }
    if (input.length < length) {
        return incomplete(length);
    }
    return is_hello ? challenge(proof, key, input.data + 1)
                    : check_client(proof, key, input.data + 1);
}

uint32_t store_proof_ping_answer(
    const struct store_proof *proof, const struct store_key *key, uint32_t nonce) {
    if (nonce != STORE_PROOF_OFFERED || proof->stage != STORE_PROOF_STAGE_NEW) {
        return nonce;
    }
    return key->kind == STORE_KEY_MUNGE ? STORE_PROOF_WANTED_CREDENTIAL : STORE_PROOF_WANTED;
}

const char *store_proof_objection(
    const struct store_request *request, struct slice guarded_prefix) {
    bool is_guarded = guarded_prefix.length > 0 && store_request_touches(request, guarded_prefix);
    return is_guarded ? "asked for a key of the job's nodes without having proved that it has "
                        "their token, "
                        "or its user by munge"
                      : objection_to((uint8_t)request->operation, guarded_prefix);
}

/* The client. */

struct store_proof_step store_proof_begin(struct store_proof *proof, const struct store_key *key) {
    if (!key->draw(key->context, proof->client_nonce)) {
        return fail(no_numbers);
    }
    proof->stage = STORE_PROOF_STAGE_CHALLENGED;
    struct store_proof_step step = step_of(STORE_PROOF_REPLIED, 0);
    step.reply[0] = OPERATION_HELLO;
    memcpy(step.reply + 1, proof->client_nonce, STORE_PROOF_NONCE_BYTES);
    step.reply_length = HELLO_BYTES;
    return step;
}

static struct store_proof_step answer_challenge(
    struct store_proof *proof, const struct store_key *key, struct slice input) {
    if (input.length < STORE_PROOF_NONCE_BYTES) {
        return incomplete(STORE_PROOF_NONCE_BYTES);
    }
    memcpy(proof->server_nonce, input.data, STORE_PROOF_NONCE_BYTES);
    struct store_proof_step step = step_of(STORE_PROOF_REPLIED, STORE_PROOF_NONCE_BYTES);
    step.reply[0] = OPERATION_PROOF;
    step.reply_length = PROOF_BYTES;
    proof->stage = STORE_PROOF_STAGE_ANSWERED;
    return compute(proof, key, client_label, step.reply + 1) ? step : fail(no_codes);
}

static struct store_proof_step check_server(
    struct store_proof *proof, const struct store_key *key, struct slice input) {
    if (input.length == 0) {
        return incomplete(1);
    }
    if (input.data[0] == 0) {
        return fail("it does not accept the job token of this node");
    }
    if (input.length < STORE_PROOF_REPLY_BYTES) {
        return incomplete(STORE_PROOF_REPLY_BYTES);
    }
    memcpy(
        proof->client_address, input.data + 1 + STORE_PROOF_CODE_BYTES, STORE_PROOF_ADDRESS_BYTES);
    if (!is_right(proof, key, server_label, input.data + 1)) {
        return fail("it has not proved that it has the job token");
    }
    proof->stage = STORE_PROOF_STAGE_PROVEN;
    return step_of(STORE_PROOF_DONE, STORE_PROOF_REPLY_BYTES);
}

struct store_proof_step store_proof_continue(
    struct store_proof *proof, const struct store_key *key, struct slice input) {
    if (key->kind == STORE_KEY_MUNGE) {
        return store_credential_follow(proof, input);
    }
    return proof->stage == STORE_PROOF_STAGE_CHALLENGED ? answer_challenge(proof, key, input)
                                                        : check_server(proof, key, input);
}
