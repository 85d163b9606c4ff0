/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/rendezvous/agent_fixed_nodes.h"

#include <stdlib.h>

#include "base/memory.h"
#include "core/round/round_key.h"

struct agent_fixed_nodes {
    const struct agent_rendezvous_settings *settings;
    struct event_loop *loop;
    struct store_thread *store; /* NULL on nodes that do not host it */
    struct event_timer *flushing;
    struct store_client *asker;  /* for requests answered at once */
    struct store_client *waiter; /* for WAITs */
    int connected_count;
    int unanswered_count; /* of the asker's requests */
    bool is_lost;
    bool is_flushing; /* LEFT is to be told */
};

static void post(struct agent_fixed_nodes *nodes, enum round_event_kind kind) {
    agent_mailbox_post(
        &nodes->settings->mailbox, &(struct node_event){.part = NODE_ROUND,
                                       .round = {.kind = kind, .round = ROUND_OF_FIXED_NODES}});
}

static void lose(struct agent_fixed_nodes *nodes, const char *reason) {
    if (nodes->is_lost) {
        return;
    }
    nodes->is_lost = true;
    log_warning(nodes->settings->log, "the job's store at %s cannot be used: %s",
        nodes->settings->node->membership.where, reason);
    post(nodes, ROUND_EVENT_CONNECTION_LOST);
}

/* The end. */

static void tell_left(struct agent_fixed_nodes *nodes) {
    if (nodes->is_flushing) {
        nodes->is_flushing = false;
        event_timer_stop(nodes->flushing);
        agent_mailbox_post(
            &nodes->settings->mailbox, &(struct node_event){.part = NODE_MEMBERSHIP,
                                           .membership = {.kind = MEMBERSHIP_EVENT_LEFT}});
    }
}

static void flushing_took_too_long(void *context) {
    tell_left(context);
}

void agent_fixed_nodes_flush(struct agent_fixed_nodes *nodes, struct duration patience) {
    bool is_connected = nodes->connected_count == 2 && !nodes->is_lost;
    nodes->is_flushing = true;
    if (nodes->unanswered_count == 0 || !is_connected) {
        tell_left(nodes);
    } else {
        event_timer_set(nodes->flushing, instant_after(event_loop_now(nodes->loop), patience));
    }
}

/* Connecting. */

static void connected(void *context, const struct failure *failure) {
    struct agent_fixed_nodes *nodes = context;
    if (failure != NULL) {
        lose(nodes, failure->message);
    } else if (++nodes->connected_count == 2) {
        post(nodes, ROUND_EVENT_CONNECTED);
    }
}

static void connection_lost(void *context, const struct failure *failure) {
    lose(context, failure->message);
}

void agent_fixed_nodes_connect(struct agent_fixed_nodes *nodes) {
    const struct launch_config *config = nodes->settings->config;
    struct store_client_settings settings = {
        .host = config->master_host,
        .port = nodes->store != NULL ? store_thread_port(nodes->store) : config->master_port,
        .connect_timeout = config->store_timeout,
        .key = nodes->settings->key,
        .connected = connected,
        .lost = connection_lost,
        .context = nodes,
    };
    nodes->asker = store_client_new(nodes->loop, &settings);
    nodes->waiter = store_client_new(nodes->loop, &settings);
}

/* Requests. */

void agent_fixed_nodes_send(
    struct agent_fixed_nodes *nodes, const struct store_client_call *call, bool is_wait) {
    nodes->unanswered_count += is_wait ? 0 : 1;
    store_client_send(is_wait ? nodes->waiter : nodes->asker, call);
}

void agent_fixed_nodes_answered(
    struct agent_fixed_nodes *nodes, bool is_wait, const char *trouble_or_null) {
    nodes->unanswered_count -= is_wait ? 0 : 1;
    if (trouble_or_null != NULL) {
        lose(nodes, trouble_or_null);
    }
    if (nodes->unanswered_count == 0) {
        tell_left(nodes);
    }
}

static void renewed(void *context) {
    post(context, ROUND_EVENT_STORE_OPENED);
}

void agent_fixed_nodes_renew_store(struct agent_fixed_nodes *nodes) {
    struct text agents_prefix = {0};
    round_key_write_prefix(nodes->settings->preparation->run_id, &agents_prefix);
    store_thread_renew(nodes->store, text_string(&agents_prefix), renewed, nodes);
    text_clear(&agents_prefix);
}

/* Life. */

struct agent_fixed_nodes *agent_fixed_nodes_new(struct event_loop *loop,
    const struct agent_rendezvous_settings *settings, struct store_thread *store) {
    struct agent_fixed_nodes *nodes = memory_allocate(sizeof *nodes);
    nodes->settings = settings;
    nodes->loop = loop;
    nodes->store = store;
    nodes->flushing = event_timer_new(loop, flushing_took_too_long, nodes);
    return nodes;
}

void agent_fixed_nodes_free(struct agent_fixed_nodes *nodes) {
    if (nodes == NULL) {
        return;
    }
    nodes->is_lost = true; /* what the clients say from here on is no news */
    store_client_free(nodes->asker);
    store_client_free(nodes->waiter);
    event_timer_free(nodes->flushing);
    free(nodes);
}

void agent_fixed_nodes_write_address(const struct agent_fixed_nodes *nodes, struct text *out) {
    if (nodes->asker != NULL) {
        store_client_write_address(nodes->asker, out);
    }
}

void agent_fixed_nodes_write_obstacle(const struct agent_fixed_nodes *nodes, struct text *out) {
    if (nodes->asker != NULL) {
        store_client_write_obstacle(nodes->asker, out);
    }
}
