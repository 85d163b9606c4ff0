/* SPDX-License-Identifier: BSD-3-Clause */
/* Loads munge's client library, and asks its daemon through it. The calls block on the daemon's
 * socket, for seconds where the daemon hangs, so they are for threads of their own.
 * Linking the library would make every machine need it. */
#ifndef MUSTER_HOST_STORE_MUNGE_H
#define MUSTER_HOST_STORE_MUNGE_H

#include <sys/types.h>

#include "base/bytes.h"
#include "base/duration.h"
#include "base/failure.h"
#include "host/loop/blocking_pool.h"
#include "wire/store/store_proof.h"

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
