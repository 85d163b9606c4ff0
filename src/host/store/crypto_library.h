/* SPDX-License-Identifier: BSD-3-Clause */
/* Loads OpenSSL's libcrypto when a job has a token. Linking it would add milliseconds and megabytes
 * to every start, and most jobs have none. */
#ifndef MUSTER_HOST_STORE_CRYPTO_LIBRARY_H
#define MUSTER_HOST_STORE_CRYPTO_LIBRARY_H

#include <stddef.h>

#include "base/failure.h"

/* The part of libcrypto's stable binary interface that is used here; its headers are often not
 * installed. */
struct crypto_library {
    void *handle;
    const void *(*sha256)(void); /* EVP_sha256 */
    unsigned char *(*hmac)(const void *digest, const void *key, int key_length,
        const unsigned char *data, size_t length, unsigned char *out_code,
        unsigned int *out_length);                                      /* HMAC */
    int (*compare)(const void *left, const void *right, size_t length); /* CRYPTO_memcmp */
};

/* `library` is the name of a file for tests; NULL: libcrypto.so.3, else libcrypto.so.1.1.
 * FAILURE_MISSING when it is not installed or lacks a function. */
__attribute__((warn_unused_result)) enum failure_code crypto_library_load(
    const char *library, struct crypto_library *out_library, struct failure *failure);

void crypto_library_unload(struct crypto_library *library);

#endif
