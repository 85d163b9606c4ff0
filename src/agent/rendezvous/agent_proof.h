/* SPDX-License-Identifier: BSD-3-Clause */
/* How this node proves itself to the job's store, and the store to it: by the job's token, by
 * munge, or not at all. */
#ifndef MUSTER_AGENT_RENDEZVOUS_AGENT_PROOF_H
#define MUSTER_AGENT_RENDEZVOUS_AGENT_PROOF_H

#include "base/failure.h"
#include "base/log.h"
#include "core/launch/launch_config.h"
#include "host/loop/event_loop.h"
#include "wire/store/store_proof.h"

/* A daemon that starts anew, or has many clients, serves again before that. */
#define AGENT_PROOF_MUNGE_PERSISTENCE_SECONDS 5

struct agent_proof;

struct agent_proof_settings {
    const struct launch_config *config;
    const char *run_id;
    struct event_loop *loop; /* runs while munge is waited for; whoever stops it ends the wait */
    const struct log *log;
    const char *munge_library;         /* a file for tests; NULL: the installed one */
    struct duration munge_persistence; /* how long a daemon that does not serve is asked again */
};

/* NULL where nodes do not prove themselves. As job_token_open and munge_identity_open. */
__attribute__((warn_unused_result)) enum failure_code agent_proof_open(
    const struct agent_proof_settings *settings, struct agent_proof **out_proof,
    struct failure *failure);
/* Accepts NULL. */
void agent_proof_free(struct agent_proof *proof);

/* NULL: nobody has to prove anything. */
const struct store_key *agent_proof_key(const struct agent_proof *proof);

#endif
