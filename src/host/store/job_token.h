/* SPDX-License-Identifier: BSD-3-Clause */
/* The token of a job: a secret that its nodes share, with which they prove themselves to each other
 * (wire/store/store_proof). Reads it, and computes with it by OpenSSL's libcrypto. It is never
 * printed. */
#ifndef MUSTER_HOST_STORE_JOB_TOKEN_H
#define MUSTER_HOST_STORE_JOB_TOKEN_H

#include <stddef.h>

#include "base/failure.h"
#include "wire/store/store_proof.h"

/* Loads OpenSSL's libcrypto when a job has a token. Linking it would add milliseconds and megabytes
 * to every start, and most jobs have none. */

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

/* The longest token that is read. */
#define JOB_TOKEN_LONGEST ((size_t)4096)

struct job_token;

/* The file belongs to this user and nobody else may read or write it (mode 0600 or less). Or it
 * belongs to root and lies in a read-only memory file system, as a Secret that Kubernetes mounts,
 * which only this container sees; then it may be readable, but not writable, for others.
 *
 * The token is the text of a variable, or is in a file; one of the two is not NULL, and the file
 * goes before. White space at the end is no part of it. FAILURE_INVALID when the token is too short
 * or too long, or when it is in a file that others may read; FAILURE_MISSING without
 * libcrypto; FAILURE_SYSTEM when the file cannot be read. */
__attribute__((warn_unused_result)) enum failure_code job_token_open(
    const char *text, const char *path, struct job_token **out_token, struct failure *failure);
/* Accepts NULL. */
void job_token_free(struct job_token *token);

/* What the two sides of a proof use, on any thread. NULL: no token, no key. */
const struct store_key *job_token_key(const struct job_token *token);

#endif
