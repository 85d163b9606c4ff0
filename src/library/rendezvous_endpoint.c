/* SPDX-License-Identifier: BSD-3-Clause */
#include "library/rendezvous_endpoint.h"

#include <stdlib.h>

#include "agent/rendezvous/agent_record.h"
#include "base/memory.h"
#include "core/round/round_key.h"
#include "wire/store/owned_request.h"

#define PORT_MAXIMUM 65535
/* A name or an address that another node has written. */
#define MASTER_MAXIMUM 255

/* Where nodes look for their master. The newest question of a rendezvous counts. */
struct question {
    struct rendezvous_endpoint *endpoint; /* NULL: nobody wants to know any more */
};

struct rendezvous_endpoint {
    struct rendezvous_endpoint_settings settings;
    struct agent_rendezvous_settings agent;
    struct agent_preparation preparation;
    struct node_settings node;
    char *where;
    struct agent_record *record;
    struct question *question; /* or NULL */
};

enum failure_code rendezvous_endpoint_new(struct event_loop *loop,
    const struct rendezvous_endpoint_settings *settings, struct rendezvous_endpoint **out_endpoint,
    struct failure *failure) {
    struct rendezvous_endpoint *endpoint = memory_allocate(sizeof *endpoint);
    const struct launch_config *config = settings->config;
    endpoint->settings = *settings;
    endpoint->where = text_format("%s:%d", config->dynamic.host, config->dynamic.port);
    endpoint->preparation.run_id = config->run_id;
    endpoint->node.membership.where = endpoint->where;
    endpoint->agent = (struct agent_rendezvous_settings){
        .config = config,
        .preparation = &endpoint->preparation,
        .node = &endpoint->node,
        .log = settings->log,
        .key = settings->key,
        .mailbox = {rendezvous_member_post, settings->node},
    };
    enum failure_code code = agent_record_new(loop, &endpoint->agent, &endpoint->record, failure);
    if (code != FAILURE_NONE) {
        rendezvous_endpoint_free(endpoint);
        return code;
    }
    *out_endpoint = endpoint;
    return FAILURE_NONE;
}

static void drop_question(struct rendezvous_endpoint *endpoint) {
    if (endpoint->question != NULL) {
        endpoint->question->endpoint = NULL; /* it is freed when it is answered */
        endpoint->question = NULL;
    }
}

void rendezvous_endpoint_free(struct rendezvous_endpoint *endpoint) {
    if (endpoint != NULL) {
        drop_question(endpoint);
        agent_record_free(endpoint->record);
        free(endpoint->where);
        free(endpoint);
    }
}

void rendezvous_endpoint_perform(
    struct rendezvous_endpoint *endpoint, const struct rendezvous_effect *effect) {
    agent_record_perform(endpoint->record, effect);
}

/* The master of a round. */

static void read_answer(
    const struct rendezvous_endpoint *endpoint, const struct store_reply *reply) {
    const struct rendezvous_endpoint_settings *settings = &endpoint->settings;
    const struct slice *items = reply->list.items;
    int64_t port = 0;
    if (reply->list.count != 2 || items[0].length == 0 || items[0].length > MASTER_MAXIMUM) {
        settings->not_met(settings->context, "the first node of the round gives no address");
        return;
    }
    char *master = text_format("%.*s", (int)items[0].length, (const char *)items[0].data);
    char *digits = text_format("%.*s",
        (int)(items[1].length > MASTER_MAXIMUM ? 0 : items[1].length), (const char *)items[1].data);
    if (text_parse_integer(digits, &port) != FAILURE_NONE || port < 0 || port > PORT_MAXIMUM) {
        settings->not_met(settings->context, "the first node of the round gives no port");
    } else {
        settings->met(settings->context, master, (int)port);
    }
    free(master);
    free(digits);
}

/* That the connection has ended is told elsewhere. */
static void answered(void *context, const struct store_client_result *result) {
    struct question *question = context;
    struct rendezvous_endpoint *endpoint = question->endpoint;
    if (endpoint != NULL) {
        endpoint->question = NULL;
        if (result->code == FAILURE_NONE) {
            read_answer(endpoint, result->reply);
        }
    }
    free(question);
}

static void list_keys(
    const struct rendezvous_endpoint *endpoint, int64_t round, struct text_list *keys) {
    round_key_list(&(struct round_key){.kind = ROUND_KEY_ADDRESS, .round = round},
        endpoint->settings.config->run_id, keys);
}

static void forget_question(struct rendezvous_endpoint *endpoint) {
    if (endpoint->question != NULL) {
        drop_question(endpoint);
        rendezvous_backend_cancel_waits(agent_record_backend(endpoint->record));
    }
}

void rendezvous_endpoint_say(
    struct rendezvous_endpoint *endpoint, int64_t round, const char *master, int port) {
    struct owned_request request = {0};
    forget_question(endpoint);
    list_keys(endpoint, round, &request.keys);
    text_list_add(&request.values, master);
    text_list_add_taken(&request.values, text_format("%d", port));
    owned_request_finish(&request, STORE_MULTI_SET, 0);
    struct store_client_call call = {.request = request.request,
        .is_raw = true,
        .timeout = endpoint->settings.config->dynamic.read_timeout};
    bool is_sent = rendezvous_backend_ask(agent_record_backend(endpoint->record), &call);
    owned_request_clear(&request);
    if (is_sent) {
        endpoint->settings.met(endpoint->settings.context, master, port);
    }
}

void rendezvous_endpoint_ask(struct rendezvous_endpoint *endpoint, int64_t round) {
    struct owned_request request = {0};
    forget_question(endpoint);
    struct question *question = memory_allocate(sizeof *question);
    question->endpoint = endpoint;
    list_keys(endpoint, round, &request.keys);
    owned_request_finish(&request, STORE_MULTI_GET, 0);
    struct store_client_call call = {.request = request.request,
        .is_raw = true,
        .waits_first = true,
        .timeout = DURATION_FOREVER,
        .done = answered,
        .context = question};
    if (rendezvous_backend_wait(agent_record_backend(endpoint->record), &call)) {
        endpoint->question = question;
    } else {
        free(question);
    }
    owned_request_clear(&request);
}

void rendezvous_endpoint_linger(struct rendezvous_endpoint *endpoint, struct duration patience) {
    forget_question(endpoint);
    agent_record_disconnect(endpoint->record);
    agent_record_linger(endpoint->record, patience);
}
