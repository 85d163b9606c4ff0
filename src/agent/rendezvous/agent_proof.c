/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/rendezvous/agent_proof.h"

#include <stdlib.h>

#include "base/memory.h"
#include "host/store/store_admission.h"

/* munge's library itself gives up after some seconds. */
#define MUNGE_PATIENCE_SECONDS 15
#define MUNGE_SILENCE_SECONDS 3

/* One of the two pointers is not NULL. */
struct agent_proof {
    struct job_token *token;
    struct munge_identity *munge;
};

struct waiting {
    const struct log *log;
};

static void munge_is_silent(void *context) {
    const struct waiting *waiting = context;
    log_warning(waiting->log, "waiting for munge's daemon, which does not answer");
}

static enum failure_code open_munge(const struct agent_proof_settings *settings,
    struct munge_identity **out_munge, struct failure *failure) {
    struct waiting waiting = {settings->log};
    const struct blocking_watch watch = {
        settings->loop, duration_from_seconds(MUNGE_SILENCE_SECONDS), munge_is_silent, &waiting};
    const struct munge_identity_settings munge = {
        .library = settings->munge_library,
        .socket = settings->config->munge_socket,
        .job = settings->run_id,
        .persistence = settings->munge_persistence,
        .patience = duration_from_seconds(MUNGE_PATIENCE_SECONDS),
        .watch = &watch,
    };
    return munge_identity_open(&munge, out_munge, failure);
}

/* Where nobody asked for munge a machine need not have it. But where its socket is, any user of the
 * machine can keep the daemon busy, so that it does not answer: a job does not become open by that.
 */
static enum failure_code go_on_without_munge(
    const struct log *log, enum failure_code code, struct failure *failure) {
    if (code == FAILURE_CANCELLED) {
        return code;
    }
    if (code != FAILURE_MISSING && code != FAILURE_UNSUPPORTED) {
        struct failure cause = *failure;
        return failure_set(failure, code,
            "this machine has munge, by which the nodes of this job would prove themselves (--auth "
            "auto), but %s; with --auth none on all nodes they prove nothing",
            cause.message);
    }
    log_record(log, code == FAILURE_MISSING ? LOG_LEVEL_INFO : LOG_LEVEL_WARNING, LOG_ORIGIN,
        "the nodes of this job do not prove themselves to each other: there is no job token, and "
        "munge is not to be had: %s",
        failure->message);
    return FAILURE_NONE;
}

static enum failure_code open_kind(const struct agent_proof_settings *settings,
    struct agent_proof *proof, struct failure *failure) {
    const struct launch_config *config = settings->config;
    enum failure_code code = FAILURE_NONE;
    switch (config->auth) {
    case LAUNCH_AUTH_OPEN:
    case LAUNCH_AUTH_NONE:
        break;
    case LAUNCH_AUTH_TOKEN:
        code = job_token_open(config->job_token, config->token_file, &proof->token, failure);
        break;
    case LAUNCH_AUTH_MUNGE:
        code = open_munge(settings, &proof->munge, failure);
        code = code == FAILURE_NONE ? code : failure_wrap(failure, "--auth munge");
        break;
    case LAUNCH_AUTH_MUNGE_HERE:
        code = open_munge(settings, &proof->munge, failure);
        code = code == FAILURE_NONE ? code : go_on_without_munge(settings->log, code, failure);
        break;
    }
    return code;
}

enum failure_code agent_proof_open(const struct agent_proof_settings *settings,
    struct agent_proof **out_proof, struct failure *failure) {
    struct agent_proof *proof = memory_allocate(sizeof *proof);
    enum failure_code code = open_kind(settings, proof, failure);
    if (code != FAILURE_NONE || agent_proof_key(proof) == NULL) {
        agent_proof_free(proof);
        proof = NULL;
    }
    if (code == FAILURE_NONE) {
        *out_proof = proof;
    }
    return code;
}

void agent_proof_free(struct agent_proof *proof) {
    if (proof != NULL) {
        job_token_free(proof->token);
        munge_identity_free(proof->munge);
        free(proof);
    }
}

const struct store_key *agent_proof_key(const struct agent_proof *proof) {
    if (proof == NULL) {
        return NULL;
    }
    return proof->token != NULL ? job_token_key(proof->token) : munge_identity_key(proof->munge);
}
