/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/agent_rendezvous.h"

#include <stdlib.h>
#include <unistd.h>

#include "agent/agent_static_rendezvous.h"
#include "base/memory.h"
#include "host/store_thread.h"
#include "host/tcp_listener.h"

struct agent_rendezvous {
    const struct agent_rendezvous_settings settings;
    struct store_thread *store;                    /* NULL on nodes that do not host it */
    struct agent_static_rendezvous *several_nodes; /* NULL when this node is alone */
    int joining_attempt;
    bool is_store_used; /* workers of an earlier attempt wrote into it */
};

static enum failure_code open_store(struct event_loop *loop,
    const struct agent_rendezvous_settings *settings, struct store_thread **out_store,
    struct failure *failure) {
    const struct launch_config *config = settings->config;
    int wanted = config->rendezvous == LAUNCH_RENDEZVOUS_STATIC ? config->master_port : 0;
    int fd;
    int port;
    enum failure_code code = tcp_listener_open(NULL, wanted, &fd, &port, failure);
    if (code != FAILURE_NONE) {
        return code;
    }
    code = store_thread_start(loop, fd, NULL, settings->log, out_store, failure);
    if (code != FAILURE_NONE) {
        close(fd);
    }
    return code;
}

enum failure_code agent_rendezvous_new(struct event_loop *loop,
    const struct agent_rendezvous_settings *settings, struct agent_rendezvous **out_rendezvous,
    struct failure *failure) {
    struct agent_rendezvous initial = {.settings = *settings};
    struct agent_rendezvous *rendezvous = memory_duplicate(&initial, sizeof initial);
    enum failure_code code = FAILURE_NONE;
    if (settings->config->node_rank == 0) {
        code = open_store(loop, settings, &rendezvous->store, failure);
    }
    if (code != FAILURE_NONE) {
        free(rendezvous);
        return code;
    }
    if (settings->config->maximum_nodes > 1) {
        rendezvous->several_nodes =
            agent_static_rendezvous_new(loop, &rendezvous->settings, rendezvous->store);
    }
    *out_rendezvous = rendezvous;
    return FAILURE_NONE;
}

void agent_rendezvous_free(struct agent_rendezvous *rendezvous) {
    if (rendezvous == NULL) {
        return;
    }
    agent_static_rendezvous_free(rendezvous->several_nodes);
    store_thread_stop(rendezvous->store);
    free(rendezvous);
}

static void join_alone(void *context) {
    struct agent_rendezvous *rendezvous = context;
    const struct agent_preparation *preparation = rendezvous->settings.preparation;
    struct node_role node = {rendezvous->settings.config->role, preparation->worker_count};
    struct node_placement placement = {
        .run_id = preparation->run_id,
        .master_address = preparation->master_address,
        .master_port = store_thread_port(rendezvous->store),
        .group_rank = 0,
        .group_world_size = 1,
        .local_world_size = preparation->worker_count,
        .attempt = rendezvous->joining_attempt,
    };
    const struct agent_rendezvous_observer *observer = &rendezvous->settings.observer;
    if (rank_assignment_compute(&node, 1, &placement.ranks) != FAILURE_NONE) {
        observer->join_failed(observer->context, placement.attempt, "the world is too large");
        return;
    }
    rendezvous->is_store_used = true;
    observer->joined(observer->context, &placement);
}

void agent_rendezvous_join(struct agent_rendezvous *rendezvous, int attempt) {
    rendezvous->joining_attempt = attempt;
    if (rendezvous->several_nodes != NULL) {
        agent_static_rendezvous_join(rendezvous->several_nodes, attempt);
    } else if (rendezvous->is_store_used) {
        store_thread_renew(rendezvous->store, NULL, join_alone, rendezvous);
    } else {
        join_alone(rendezvous);
    }
}

void agent_rendezvous_enter_barrier(struct agent_rendezvous *rendezvous) {
    const struct agent_rendezvous_observer *observer = &rendezvous->settings.observer;
    if (rendezvous->several_nodes != NULL) {
        agent_static_rendezvous_enter_barrier(rendezvous->several_nodes);
    } else {
        observer->barrier_ended(observer->context, true);
    }
}

void agent_rendezvous_announce_restart(struct agent_rendezvous *rendezvous) {
    if (rendezvous->several_nodes != NULL) {
        agent_static_rendezvous_announce_restart(rendezvous->several_nodes);
    }
}

void agent_rendezvous_announce_failure(struct agent_rendezvous *rendezvous) {
    if (rendezvous->several_nodes != NULL) {
        agent_static_rendezvous_announce_failure(rendezvous->several_nodes);
    }
}

void agent_rendezvous_settle(
    struct agent_rendezvous *rendezvous, void (*settled)(void *context), void *context) {
    if (rendezvous->several_nodes != NULL) {
        agent_static_rendezvous_settle(rendezvous->several_nodes, settled, context);
    } else {
        settled(context);
    }
}
