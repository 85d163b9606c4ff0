/* SPDX-License-Identifier: BSD-3-Clause */
/* Which machines a store serves besides its own: all, or those with the addresses of a list. The
 * agent's thread changes it while the store's thread asks. A change holds for the very next
 * connection: a letter to the store's thread could come after a worker that the change lets in. So
 * this is one of the few things that threads share, under a lock. */
#ifndef MUSTER_HOST_STORE_STORE_ADMISSION_H
#define MUSTER_HOST_STORE_STORE_ADMISSION_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/bytes.h"
#include "base/duration.h"
#include "base/failure.h"
#include "host/loop/blocking_pool.h"
#include "host/network/network_address.h"
#include "wire/store/store_proof.h"

struct store_admission;

/* At first all machines, or none but the store's own. Never NULL. */
struct store_admission *store_admission_new(bool is_open);
/* Accepts NULL. No store uses it any more. */
void store_admission_free(struct store_admission *admission);

/* From now on all machines. */
void store_admission_open(struct store_admission *admission);
/* From now on only machines with these addresses, which are parted by blanks. Words that are no
 * address are left out. Returns how many different ones there are. */
size_t store_admission_limit(struct store_admission *admission, const char *addresses);

/* Whether a client with this address, on another machine, is served. IPv4 addresses in the form of
 * IPv6 are IPv4 addresses. */
bool store_admission_admits(struct store_admission *admission, const union tcp_address *peer);

/* Whether it is news that this client is not served: true the first time for each address. Many
 * addresses may be forgotten. */
bool store_admission_is_news(struct store_admission *admission, const union tcp_address *peer);

/* The token of a job: a secret that its nodes share, with which they prove themselves to each other
 * (wire/store/store_proof). Reads it, and computes with it by OpenSSL's libcrypto. It is never
 * printed. */

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

/* Loads munge's client library, and asks its daemon through it. The calls block on the daemon's
 * socket, for seconds where the daemon hangs, so they are for threads of their own.
 * Linking the library would make every machine need it. */

/* Who this node is to munge: the library, the daemon's socket, the user as whom the daemon knows
 * this process (in a container that may be another number than geteuid's), and the job. Asks the
 * daemon for the credentials of a proof (wire/store/store_proof), on threads. */

struct munge_identity;

struct munge_identity_settings {
    const char *library;                /* a file for tests; NULL: libmunge.so.2 */
    const char *socket;                 /* the daemon's; NULL: MUNGE_LIBRARY_SOCKET */
    const char *job;                    /* as all its nodes call it */
    struct duration persistence;        /* how long a daemon is asked again that does not serve */
    struct duration patience;           /* how long one is waited for that does not answer */
    const struct blocking_watch *watch; /* as blocking_task_run_within */
};

/* Has munge make a credential and check it. FAILURE_MISSING when there is no socket,
 * FAILURE_UNSUPPORTED when there is no library for it, or it cannot be looked at; else there is a
 * daemon's socket: FAILURE_SYSTEM with munge's words, or as blocking_task_run_within. */
__attribute__((warn_unused_result)) enum failure_code munge_identity_open(
    const struct munge_identity_settings *settings, struct munge_identity **out_identity,
    struct failure *failure);
/* No question may be open. Accepts NULL. */
void munge_identity_free(struct munge_identity *identity);

/* What the two sides of a proof use, on any thread. NULL: no identity, no key. */
const struct store_key *munge_identity_key(const struct munge_identity *identity);

/* What munge is asked in the course of one proof, by the side that has this key. */
struct munge_question {
    const struct store_key *key; /* munge_identity_key */
    const struct store_proof *proof;
    struct slice presented; /* the other side's credential, to be checked; or empty */
    bool makes_own;         /* one of its own is to be made, unless the other's is not accepted */
    enum store_credential_side side; /* that asks */
};

/* Called on the loop of the blocking calls. munge's words are of what failed, or empty. */
typedef void munge_answered(
    void *context, const struct store_credential_answer *answer, const char *words);

/* As blocking_pool_send; the question is copied. The answer comes once, unless the blocking call is
 * dropped. */
__attribute__((warn_unused_result)) enum failure_code munge_identity_ask(struct blocking_pool *pool,
    const struct munge_question *question, munge_answered *answered, void *context,
    struct blocking_call **out_call, struct failure *failure);

#endif
