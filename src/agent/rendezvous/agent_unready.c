/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/rendezvous/agent_unready.h"

#include <stdlib.h>

#include "base/memory.h"
#include "core/round/round_key.h"

struct agent_unready {
    struct rendezvous_backend *backend;
    const char *run_id;
    struct duration answer_timeout;
    bool is_asked;
    int64_t asked_round;
    struct text_list asked; /* the addresses of the nodes of the round asked about, by rank */
    int64_t round;          /* of the last answer */
    struct text_list names; /* of those that were not ready then */
};

struct agent_unready *agent_unready_new(
    struct rendezvous_backend *backend, const char *run_id, struct duration answer_timeout) {
    struct agent_unready initial = {
        .backend = backend, .run_id = run_id, .answer_timeout = answer_timeout};
    return memory_duplicate(&initial, sizeof initial);
}

void agent_unready_free(struct agent_unready *unready) {
    if (unready != NULL) {
        text_list_clear(&unready->asked);
        text_list_clear(&unready->names);
        free(unready);
    }
}

static void answered(void *context, const struct store_client_result *result) {
    struct agent_unready *unready = context;
    unready->is_asked = false;
    if (result->code != FAILURE_NONE || result->reply->list.count != unready->asked.count) {
        return;
    }
    text_list_clear(&unready->names);
    unready->round = unready->asked_round;
    for (size_t i = 0; i < unready->asked.count; i++) {
        if (result->reply->list.items[i].length == 0) {
            text_list_add(&unready->names, unready->asked.items[i]);
        }
    }
}

static const char *address_of_rank(const struct rendezvous_state *record, int64_t rank) {
    for (size_t i = 0; i < record->count; i++) {
        if (record->nodes[i].is_participant && record->nodes[i].rank == rank) {
            return record->nodes[i].identity.address;
        }
    }
    return "?";
}

/* What is not there is empty for an agent's store. */
static bool ask(struct agent_unready *unready, size_t count) {
    const struct round_key group = {
        .kind = ROUND_KEY_ALL_ROLE_INFOS, .round = unready->asked_round, .node = (int)count};
    struct text_list keys = {0};
    struct slice slices[AGENT_UNREADY_NODES_MAXIMUM];
    round_key_list(&group, unready->run_id, &keys);
    for (size_t i = 0; i < count; i++) {
        slices[i] = slice_from_string(keys.items[i]);
    }
    const struct store_client_call call = {
        .request = {.operation = STORE_MULTI_GET, .keys = slices, .count = count},
        .is_raw = true,
        .timeout = unready->answer_timeout,
        .done = answered,
        .context = unready,
    };
    bool is_asked = rendezvous_backend_ask(unready->backend, &call);
    text_list_clear(&keys);
    return is_asked;
}

bool agent_unready_look(struct agent_unready *unready, const struct rendezvous_state *record) {
    size_t count = rendezvous_state_participants(record);
    if (unready->is_asked || count == 0 || count > AGENT_UNREADY_NODES_MAXIMUM ||
        rendezvous_state_is_ranked(record) || !rendezvous_backend_is_at_agent(unready->backend)) {
        return false;
    }
    text_list_clear(&unready->asked);
    for (size_t rank = 0; rank < count; rank++) {
        text_list_add(&unready->asked, address_of_rank(record, (int64_t)rank));
    }
    unready->asked_round = record->round;
    unready->is_asked = ask(unready, count);
    return unready->is_asked;
}

void agent_unready_list(
    const struct agent_unready *unready, int64_t round, struct text_list *out_names) {
    for (size_t i = 0; round == unready->round && i < unready->names.count; i++) {
        text_list_add(out_names, unready->names.items[i]);
    }
}
