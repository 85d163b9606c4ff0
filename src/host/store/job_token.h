/* SPDX-License-Identifier: BSD-3-Clause */
/* The token of a job: a secret that its nodes share, with which they prove themselves to each other
 * (wire/store/store_proof). Reads it, and computes with it by OpenSSL's libcrypto. It is never
 * printed. */
#ifndef MUSTER_HOST_STORE_JOB_TOKEN_H
#define MUSTER_HOST_STORE_JOB_TOKEN_H

#include <stddef.h>

#include "base/failure.h"
#include "wire/store/store_proof.h"

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
