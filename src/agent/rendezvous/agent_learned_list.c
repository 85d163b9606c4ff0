/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/rendezvous/agent_learned_list.h"

#include <stdlib.h>

#include "base/memory.h"
#include "core/rendezvous/rendezvous_key.h"

struct agent_learned_list {
    struct rendezvous_backend *backend;
    struct agent_learned_list_settings settings;
    struct text key;
};

struct agent_learned_list *agent_learned_list_new(
    struct rendezvous_backend *backend, const struct agent_learned_list_settings *settings) {
    struct agent_learned_list initial = {.backend = backend, .settings = *settings};
    rendezvous_key_write_learned_list(settings->run_id, &initial.key);
    return memory_duplicate(&initial, sizeof initial);
}

void agent_learned_list_free(struct agent_learned_list *list) {
    if (list != NULL) {
        text_clear(&list->key);
        free(list);
    }
}

static struct slice own_key(const struct agent_learned_list *list) {
    return slice_from_string(text_string(&list->key));
}

static bool ask(struct agent_learned_list *list, struct store_request request,
    void (*answered)(void *context, const struct store_client_result *result)) {
    struct store_client_call call = {
        .request = request,
        .is_raw = true,
        .timeout = list->settings.answer_timeout,
        .done = answered,
        .context = list,
    };
    return rendezvous_backend_ask(list->backend, &call);
}

static void answer(struct agent_learned_list *list, struct slice text) {
    list->settings.answered(list->settings.context, text);
}

void agent_learned_list_publish(struct agent_learned_list *list, struct slice text) {
    if (text.length <= AGENT_LEARNED_LIST_MAXIMUM) {
        (void)ask(list,
            (struct store_request){.operation = STORE_SET, .key = own_key(list), .value = text},
            NULL);
    }
}

/* Reading: a GET of what is not there would wait. */

static void read_text(void *context, const struct store_client_result *result) {
    bool is_list =
        result->code == FAILURE_NONE && result->reply->blob.length <= AGENT_LEARNED_LIST_MAXIMUM;
    answer(context, is_list ? result->reply->blob : (struct slice){0});
}

static void checked(void *context, const struct store_client_result *result) {
    struct agent_learned_list *list = context;
    bool is_there = result->code == FAILURE_NONE && result->reply->byte == STORE_READY;
    if (!is_there ||
        !ask(list, (struct store_request){.operation = STORE_GET, .key = own_key(list)},
            read_text)) {
        answer(list, (struct slice){0});
    }
}

void agent_learned_list_look(struct agent_learned_list *list) {
    struct slice keys[] = {own_key(list)};
    if (!ask(list, (struct store_request){.operation = STORE_CHECK, .keys = keys, .count = 1},
            checked)) {
        answer(list, (struct slice){0});
    }
}
