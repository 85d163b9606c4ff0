/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/store/store_link_proof.h"

#include <stdio.h>

#include "host/store/munge_identity.h"

void store_link_drop_question(struct store_link *link) {
    if (link->errand != NULL) {
        errands_drop(link->errands, link->errand);
        link->errand = NULL;
    }
}

/* What failed may succeed at another attempt: then the owner may make one. */
static void end_proof(
    struct store_link *link, const struct store_proof_step *step, const char *words) {
    char reason[512];
    bool is_token = link->key->kind == STORE_KEY_TOKEN;
    snprintf(reason, sizeof reason, "%s%s%s%s%s", step->reason,
        is_token ? "; give all nodes the same one, by MUSTER_JOB_TOKEN or --token-file" : "",
        words[0] != '\0' ? " (" : "", words, words[0] != '\0' ? ")" : "");
    store_link_end(link, step->may_pass ? FAILURE_DISCONNECTED : FAILURE_INVALID, reason);
}

static void munge_has_answered(
    void *context, const struct store_credential_answer *answer, const char *words) {
    struct store_link *link = context;
    struct bytes reply = {0};
    link->errand = NULL;
    struct store_proof_step step = store_credential_answered(&link->proof, answer, &reply);
    if (step.outcome == STORE_PROOF_FAILED) {
        end_proof(link, &step, words);
    } else if (step.outcome == STORE_PROOF_DONE) {
        store_link_become_ready(link);
    } else {
        tcp_stream_send(&link->stream, bytes_slice(&reply));
    }
    bytes_clear(&reply);
}

static void ask_munge(struct store_link *link, struct slice presented) {
    struct failure failure = {0};
    const struct munge_question question = {
        .key = link->key,
        .proof = &link->proof,
        .presented = presented,
        .makes_own = presented.length == 0,
        .side = STORE_CREDENTIAL_OF_CLIENT,
    };
    enum failure_code code =
        link->errands != NULL ? FAILURE_NONE : errands_new(link->loop, &link->errands, &failure);
    if (code == FAILURE_NONE) {
        code = munge_identity_ask(
            link->errands, &question, munge_has_answered, link, &link->errand, &failure);
    }
    if (code != FAILURE_NONE) {
        store_link_end(link, code, failure.message);
    }
}

/* Carries out one step of the proof. Returns how many bytes it took. */
size_t store_link_take_step(
    struct store_link *link, const struct store_proof_step *step, size_t *out_needed) {
    if (step->outcome == STORE_PROOF_INCOMPLETE) {
        *out_needed = step->needed;
        return 0;
    }
    if (step->outcome == STORE_PROOF_FAILED) {
        end_proof(link, step, "");
        return 0;
    }
    if (step->outcome == STORE_PROOF_ASKED) {
        ask_munge(link, step->presented);
        return step->consumed;
    }
    if (step->outcome == STORE_PROOF_DONE) {
        store_link_become_ready(link);
    } else {
        tcp_stream_send(&link->stream, (struct slice){step->reply, step->reply_length});
    }
    return step->consumed;
}

static void begin_proof(struct store_link *link) {
    struct store_proof_step step = store_proof_begin(&link->proof, link->key);
    link->is_proving = true;
    (void)store_link_take_step(link, &step, NULL);
}

/* What this side and the other want does not fit. */
static const char *misfit(bool wants_token, bool wants_munge, const struct store_key *key) {
    if (wants_token) {
        return "it wants a job token, and none is given here; give all nodes the same one, by "
               "MUSTER_JOB_TOKEN or --token-file";
    }
    if (wants_munge) {
        return key != NULL
                   ? "it wants munge's credentials, and this node has a job token; give all nodes "
                     "the same token, or all of them --auth munge"
                   : "it wants munge's credentials, and this node uses none: munge is not to be "
                     "had here (in a container mount /run/munge), or --auth none is given; give "
                     "all nodes munge, or the same job token, or all of them --auth none";
    }
    return key->kind == STORE_KEY_MUNGE
               ? "it wants no proof by munge, so it cannot prove that it is this job's; give its "
                 "node munge, too, or all nodes the same job token, or where nodes of torchrun "
                 "take part --auth none"
               : "it wants no job token, so it cannot prove that it is this job's; give all nodes "
                 "the same token, or where nodes of torchrun take part --auth none";
}

void store_link_take_greeting(struct store_link *link, uint32_t nonce) {
    const struct store_key *key = link->key;
    bool wants_token = nonce == STORE_PROOF_WANTED;
    bool wants_munge = nonce == STORE_PROOF_WANTED_CREDENTIAL;
    bool has_token = key != NULL && key->kind == STORE_KEY_TOKEN;
    bool has_munge = key != NULL && key->kind == STORE_KEY_MUNGE;
    if (!wants_token && !wants_munge && nonce != STORE_PROOF_OFFERED) {
        store_link_end(
            link, FAILURE_PROTOCOL, "it is no store: it did not repeat the number it was sent");
    } else if (wants_token != has_token || wants_munge != has_munge) {
        store_link_end(link, FAILURE_INVALID, misfit(wants_token, wants_munge, key));
    } else if (key != NULL) {
        begin_proof(link);
    } else {
        store_link_become_ready(link);
    }
}
