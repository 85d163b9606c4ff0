/* SPDX-License-Identifier: BSD-3-Clause */
/* Gives the input to the server's side of a proof, and to the client's, of both kinds. Both must
 * say what they have taken of it, and neither may believe that the other side has proved itself, as
 * no code is right, and munge calls each credential invalid. */
#include "fuzz_input.h"

#include <string.h>

#include "wire/store/store_proof.h"

static bool authenticate(
    void *context, struct slice message, uint8_t out_code[static STORE_PROOF_CODE_BYTES]) {
    (void)context;
    FUZZ_REQUIRE(message.length > 2 * STORE_PROOF_NONCE_BYTES);
    memset(out_code, message.data[message.length - 1], STORE_PROOF_CODE_BYTES);
    return true;
}

/* As though the input had never hit the code. */
static bool equals(void *context, const uint8_t *left, const uint8_t *right) {
    (void)context;
    (void)memcmp(left, right, STORE_PROOF_CODE_BYTES); /* both are there */
    return false;
}

static bool draw(void *context, uint8_t out_nonce[static STORE_PROOF_NONCE_BYTES]) {
    memset(out_nonce, ++*(uint8_t *)context, STORE_PROOF_NONCE_BYTES);
    return true;
}

static void check(const struct store_proof_step *step, size_t length) {
    FUZZ_REQUIRE(step->consumed <= length);
    FUZZ_REQUIRE(step->reply_length <= STORE_PROOF_REPLY_BYTES);
    FUZZ_REQUIRE(step->outcome != STORE_PROOF_DONE);
    FUZZ_REQUIRE(step->outcome != STORE_PROOF_FAILED || step->reason != NULL);
    FUZZ_REQUIRE(step->outcome != STORE_PROOF_INCOMPLETE || step->needed > length);
    FUZZ_REQUIRE(step->outcome != STORE_PROOF_INCOMPLETE ||
                 step->needed <= 5 + STORE_CREDENTIAL_LONGEST + STORE_PROOF_ADDRESS_BYTES);
    FUZZ_REQUIRE(step->presented.length <= STORE_CREDENTIAL_LONGEST);
}

/* Reads all that is presented. */
static enum store_credential_verdict judge(struct slice presented) {
    uint8_t sum = 0;
    for (size_t i = 0; i < presented.length; i++) {
        sum = (uint8_t)(sum + presented.data[i]);
    }
    return (enum store_credential_verdict)(1 + sum % (STORE_CREDENTIAL_VERDICTS - 1));
}

static void serve(const struct store_key *key, struct slice guarded_prefix, struct slice input) {
    struct store_proof proof = {0};
    struct store_proof_step step = {.outcome = STORE_PROOF_REPLIED};
    while (step.outcome == STORE_PROOF_REPLIED && input.length > 0) {
        step = store_proof_serve(&proof, key, guarded_prefix, input);
        check(&step, input.length);
        input = slice_from(input, step.consumed);
    }
    if (step.outcome == STORE_PROOF_ASKED) {
        struct bytes reply = {0};
        const struct store_credential_answer answer = {.verdict = judge(step.presented)};
        step = store_credential_verdict_given(&proof, &answer, &reply);
        FUZZ_REQUIRE(step.outcome == STORE_PROOF_FAILED && step.reason != NULL);
        bytes_clear(&reply);
    }
}

/* munge can make credentials, but trusts none. */
static struct store_proof_step answer(
    struct store_proof *proof, const struct store_proof_step *asked) {
    struct bytes reply = {0};
    const struct store_credential_answer given = {.verdict = asked->presented.length > 0
                                                                 ? judge(asked->presented)
                                                                 : STORE_CREDENTIAL_ACCEPTED,
        .credential = slice_from_string("OWN")};
    struct store_proof_step step = store_credential_answered(proof, &given, &reply);
    bytes_clear(&reply);
    return step;
}

static void follow(const struct store_key *key, struct slice input) {
    struct store_proof proof = {0};
    struct store_proof_step step = store_proof_begin(&proof, key);
    while (step.outcome == STORE_PROOF_REPLIED) {
        step = store_proof_continue(&proof, key, input);
        check(&step, input.length);
        input = slice_from(input, step.consumed);
        if (step.outcome == STORE_PROOF_ASKED) {
            step = answer(&proof, &step);
            FUZZ_REQUIRE(step.outcome != STORE_PROOF_DONE);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    uint8_t drawn = 0;
    static const enum store_key_kind kinds[] = {STORE_KEY_TOKEN, STORE_KEY_MUNGE};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const struct store_key key = {authenticate, equals, draw, &drawn, kinds[i]};
        serve(&key, (struct slice){0}, (struct slice){data, size});
        serve(&key, slice_from_string("/p/"), (struct slice){data, size});
        follow(&key, (struct slice){data, size});
    }
    return 0;
}
