/* SPDX-License-Identifier: BSD-3-Clause */
/* A key for tests of the proof: no cryptography, but a code that depends on every byte of token and
 * message, and nonces that count up. */
#ifndef MUSTER_TESTS_WIRE_STORE_PROOF_KEY_H
#define MUSTER_TESTS_WIRE_STORE_PROOF_KEY_H

#include <string.h>

#include "wire/store/store_proof.h"

struct plain_key {
    uint8_t token;
    uint8_t drawn; /* nonces so far */
    bool cannot_draw;
};

static inline bool plain_authenticate(
    void *context, struct slice message, uint8_t out_code[static STORE_PROOF_CODE_BYTES]) {
    const struct plain_key *plain = context;
    uint32_t sum = plain->token;
    for (size_t i = 0; i < message.length; i++) {
        sum = sum * 31 + message.data[i];
    }
    for (size_t i = 0; i < STORE_PROOF_CODE_BYTES; i++) {
        sum = sum * 31 + 7;
        out_code[i] = (uint8_t)(sum >> 16);
    }
    return true;
}

static inline bool plain_equals(void *context, const uint8_t *left, const uint8_t *right) {
    (void)context;
    return memcmp(left, right, STORE_PROOF_CODE_BYTES) == 0;
}

static inline bool plain_draw(void *context, uint8_t out_nonce[static STORE_PROOF_NONCE_BYTES]) {
    struct plain_key *plain = context;
    memset(out_nonce, ++plain->drawn, STORE_PROOF_NONCE_BYTES);
    return !plain->cannot_draw;
}

static inline struct store_key plain_store_key(struct plain_key *plain) {
    return (struct store_key){plain_authenticate, plain_equals, plain_draw, plain, STORE_KEY_TOKEN};
}

#endif
