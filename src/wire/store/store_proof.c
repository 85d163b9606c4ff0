/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/store/store_proof.h"

#include <string.h>

#include "wire/store/store_credential.h"

/* Operations far from PyTorch's, which are counted from 0. */
#define OPERATION_HELLO 0xf0
#define OPERATION_PROOF 0xf1

#define HELLO_BYTES (1 + STORE_PROOF_NONCE_BYTES)
#define PROOF_BYTES (1 + STORE_PROOF_CODE_BYTES)

/* Both labels have the same length, so that what is authenticated has one form. */
#define LABEL_BYTES 24
static const char client_label[LABEL_BYTES] = "muster job token client";
static const char server_label[LABEL_BYTES] = "muster job token server";

static const char no_numbers[] = "no random numbers can be drawn here";
static const char no_codes[] = "no codes can be computed here";

static struct store_proof_step step_of(enum store_proof_outcome outcome, size_t consumed) {
    return (struct store_proof_step){.outcome = outcome, .consumed = consumed};
}

static struct store_proof_step incomplete(size_t needed) {
    return (struct store_proof_step){.outcome = STORE_PROOF_INCOMPLETE, .needed = needed};
}

static struct store_proof_step fail(const char *reason) {
    return (struct store_proof_step){.outcome = STORE_PROOF_FAILED, .reason = reason};
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
