/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/rendezvous/agent_root_cause.h"

#include <stdlib.h>

#include "base/memory.h"
#include "core/rendezvous/rendezvous_key.h"
#include "wire/failure/failure_json.h"

struct agent_root_cause {
    struct rendezvous_backend *backend;
    struct agent_root_cause_settings settings;
    struct text written; /* this node's own account */
    struct text key;     /* of the round looked at */
    int looks_under_way; /* the answers to all but the last are too late */
};

struct agent_root_cause *agent_root_cause_new(
    struct rendezvous_backend *backend, const struct agent_root_cause_settings *settings) {
    struct agent_root_cause initial = {.backend = backend, .settings = *settings};
    return memory_duplicate(&initial, sizeof initial);
}

void agent_root_cause_free(struct agent_root_cause *root_cause) {
    if (root_cause != NULL) {
        text_clear(&root_cause->written);
        text_clear(&root_cause->key);
        free(root_cause);
    }
}

static void learn(struct agent_root_cause *root_cause, struct slice json) {
    struct failure_account account = {0};
    if (json.length == 0) {
        return; /* the round's keys were cleared away since its account was found */
    }
    if (failure_json_read(json, &account) == FAILURE_NONE) {
        root_cause->settings.learnt(root_cause->settings.context, &account);
    } else {
        log_warning(root_cause->settings.log,
            "what another node wrote about the first failure makes no sense, and is left out");
    }
    failure_account_clear(&account);
}

static bool ask(struct agent_root_cause *root_cause, struct store_request request,
    void (*answered)(void *context, const struct store_client_result *result)) {
    struct store_client_call call = {
        .request = request,
        .is_raw = true,
        .timeout = root_cause->settings.answer_timeout,
        .done = answered,
        .context = root_cause,
    };
    return rendezvous_backend_ask(root_cause->backend, &call);
}

/* Writing. */

static void published(void *context, const struct store_client_result *result) {
    struct agent_root_cause *root_cause = context;
    if (result->code == FAILURE_NONE &&
        !slice_equals(result->reply->blob, slice_from_string(text_string(&root_cause->written)))) {
        learn(root_cause, result->reply->blob);
    }
}

void agent_root_cause_publish(
    struct agent_root_cause *root_cause, int64_t round, const struct failure_account *account) {
    struct text key = {0};
    text_clear(&root_cause->written);
    failure_json_write(account, &root_cause->written);
    rendezvous_key_write_root_cause(root_cause->settings.run_id, round, &key);
    (void)ask(root_cause,
        (struct store_request){.operation = STORE_COMPARE_SET,
            .key = slice_from_string(text_string(&key)),
            .value = slice_from_string(text_string(&root_cause->written))},
        published);
    text_clear(&key);
}

/* Reading. What is not there is empty for an agent's store. For another one a GET of it is a fault,
 * so that a CHECK goes before. */

static void end_look(struct agent_root_cause *root_cause) {
    root_cause->looks_under_way--;
    if (root_cause->looks_under_way == 0) {
        root_cause->settings.looked(root_cause->settings.context);
    }
}

/* What a later look has taken the place of is another round's, perhaps. */
static void read_account(void *context, const struct store_client_result *result) {
    struct agent_root_cause *root_cause = context;
    if (result->code == FAILURE_NONE && root_cause->looks_under_way == 1) {
        learn(root_cause, result->reply->blob);
    }
    end_look(root_cause);
}

static bool get(struct agent_root_cause *root_cause) {
    return ask(root_cause,
        (struct store_request){
            .operation = STORE_GET, .key = slice_from_string(text_string(&root_cause->key))},
        read_account);
}

static void checked(void *context, const struct store_client_result *result) {
    struct agent_root_cause *root_cause = context;
    bool is_there = result->code == FAILURE_NONE && result->reply->byte == STORE_READY;
    if (!is_there || root_cause->looks_under_way > 1 || !get(root_cause)) {
        end_look(root_cause);
    }
}

static bool check(struct agent_root_cause *root_cause) {
    struct slice keys[] = {slice_from_string(text_string(&root_cause->key))};
    return ask(root_cause,
        (struct store_request){.operation = STORE_CHECK, .keys = keys, .count = 1}, checked);
}

void agent_root_cause_look(struct agent_root_cause *root_cause, int64_t round) {
    text_clear(&root_cause->key);
    rendezvous_key_write_root_cause(root_cause->settings.run_id, round, &root_cause->key);
    root_cause->looks_under_way++;
    bool is_asked =
        rendezvous_backend_is_at_agent(root_cause->backend) ? get(root_cause) : check(root_cause);
    if (!is_asked) {
        end_look(root_cause);
    }
}
