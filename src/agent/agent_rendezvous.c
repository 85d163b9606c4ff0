/* SPDX-License-Identifier: BSD-3-Clause */
#include "agent/agent_rendezvous.h"

#include <stdlib.h>
#include <unistd.h>

#include "agent/agent_dynamic_rendezvous.h"
#include "agent/agent_static_rendezvous.h"
#include "base/memory.h"
#include "core/rendezvous_diary.h"
#include "host/local_address.h"
#include "host/store_thread.h"
#include "host/tcp_listener.h"

struct agent_rendezvous {
    const struct agent_rendezvous_settings settings;
    struct agent_dynamic_rendezvous *changing_nodes; /* NULL unless nodes come and go … */
    struct agent_static_rendezvous *fixed_nodes;     /* NULL unless they are fixed; both NULL when
                                                        this node is alone */
    struct store_thread *store;    /* fixed nodes or alone; NULL on nodes that do not host it */
    int64_t ticket;                /* of the join in flight … */
    int attempt;                   /* … and its attempt */
    bool is_store_used;            /* workers of an earlier attempt wrote into it */
    struct rendezvous_diary diary; /* of a node alone … */
    struct node_identity me;       /* … which is this one */
    int64_t round;
    bool is_stopped; /* by a signal: then torchrun's node does not close its rendezvous */
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
        return wanted == 0 ? code
                           : failure_wrap(failure, "this node hosts the job's store; is another "
                                                   "job's there? give all nodes another port, "
                                                   "with --rdzv-endpoint or --master-port");
    }
    struct store_server_settings server = {
        .log = settings->log, .operations = settings->worker_store_operations};
    return store_thread_start(loop, fd, &server, out_store, failure);
}

/* torchrun's rendezvous, too, records what it does where there is one node, unless its backend is
 * the static one. */
static void open_diary(struct agent_rendezvous *rendezvous) {
    const struct agent_rendezvous_settings *settings = &rendezvous->settings;
    struct failure ignored;
    char *name = NULL;
    if (settings->observer.recorded == NULL || settings->config->maximum_nodes > 1 ||
        text_equals(settings->config->rdzv_backend, "static")) {
        return;
    }
    const char *address = settings->config->local_address;
    if (address == NULL && local_address_qualified_name(&name, &ignored) == FAILURE_NONE) {
        address = name;
    }
    node_identity_init(&rendezvous->me, address != NULL ? address : "", getpid(), 0);
    rendezvous->diary = (struct rendezvous_diary){
        .run_id = settings->preparation->run_id,
        .record = settings->observer.recorded,
        .context = settings->observer.context,
    };
    rendezvous_diary_host(&rendezvous->diary, &rendezvous->me);
    free(name);
}

enum failure_code agent_rendezvous_new(struct event_loop *loop,
    const struct agent_rendezvous_settings *settings, struct agent_rendezvous **out_rendezvous,
    struct failure *failure) {
    struct agent_rendezvous initial = {.settings = *settings};
    struct agent_rendezvous *rendezvous = memory_duplicate(&initial, sizeof initial);
    bool is_dynamic = settings->config->rendezvous == LAUNCH_RENDEZVOUS_DYNAMIC;
    enum failure_code code = FAILURE_NONE;
    if (is_dynamic) {
        code = agent_dynamic_rendezvous_new(
            loop, &rendezvous->settings, &rendezvous->changing_nodes, failure);
    } else if (settings->config->node_rank == 0) {
        code = open_store(loop, settings, &rendezvous->store, failure);
    }
    if (code != FAILURE_NONE) {
        free(rendezvous);
        return code;
    }
    if (!is_dynamic && settings->config->maximum_nodes > 1) {
        rendezvous->fixed_nodes =
            agent_static_rendezvous_new(loop, &rendezvous->settings, rendezvous->store);
    }
    open_diary(rendezvous);
    *out_rendezvous = rendezvous;
    return FAILURE_NONE;
}

void agent_rendezvous_free(struct agent_rendezvous *rendezvous) {
    if (rendezvous == NULL) {
        return;
    }
    agent_dynamic_rendezvous_free(rendezvous->changing_nodes);
    agent_static_rendezvous_free(rendezvous->fixed_nodes);
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
        .attempt = rendezvous->attempt,
    };
    const struct agent_rendezvous_observer *observer = &rendezvous->settings.observer;
    if (rank_assignment_compute(&node, 1, &placement.ranks) != FAILURE_NONE) {
        observer->join_failed(observer->context, rendezvous->ticket, "the world is too large");
        return;
    }
    rendezvous->is_store_used = true;
    rendezvous_diary_join(&rendezvous->diary, &rendezvous->me, rendezvous->round++, 0, 1);
    observer->joined(observer->context, rendezvous->ticket, &placement);
}

void agent_rendezvous_join(struct agent_rendezvous *rendezvous, int64_t ticket, int attempt) {
    rendezvous->ticket = ticket;
    rendezvous->attempt = attempt;
    if (rendezvous->changing_nodes != NULL) {
        agent_dynamic_rendezvous_join(rendezvous->changing_nodes, ticket);
        return;
    }
    if (rendezvous->fixed_nodes != NULL) {
        agent_static_rendezvous_join(rendezvous->fixed_nodes, ticket, attempt);
        return;
    }
    rendezvous_diary_attempt(&rendezvous->diary, &rendezvous->me);
    if (rendezvous->is_store_used) {
        store_thread_renew(rendezvous->store, NULL, join_alone, rendezvous);
    } else {
        join_alone(rendezvous);
    }
}

void agent_rendezvous_enter_barrier(struct agent_rendezvous *rendezvous) {
    const struct agent_rendezvous_observer *observer = &rendezvous->settings.observer;
    if (rendezvous->changing_nodes != NULL) {
        agent_dynamic_rendezvous_enter_barrier(rendezvous->changing_nodes);
    } else if (rendezvous->fixed_nodes != NULL) {
        agent_static_rendezvous_enter_barrier(rendezvous->fixed_nodes);
    } else {
        observer->barrier_ended(observer->context, true);
    }
}

/* Nodes that are fixed tell each other that they failed, not why. */
void agent_rendezvous_announce_restart(
    struct agent_rendezvous *rendezvous, const struct failure_account *account) {
    if (rendezvous->changing_nodes != NULL) {
        agent_dynamic_rendezvous_announce_restart(rendezvous->changing_nodes, account);
    } else if (rendezvous->fixed_nodes != NULL) {
        agent_static_rendezvous_announce_restart(rendezvous->fixed_nodes);
    }
}

void agent_rendezvous_doubt_failure(
    struct agent_rendezvous *rendezvous, const struct failure_account *account) {
    agent_dynamic_rendezvous_doubt_failure(rendezvous->changing_nodes, account);
}

void agent_rendezvous_announce_failure(
    struct agent_rendezvous *rendezvous, const struct failure_account *account) {
    if (rendezvous->changing_nodes != NULL) {
        agent_dynamic_rendezvous_announce_failure(rendezvous->changing_nodes, account);
    } else if (rendezvous->fixed_nodes != NULL) {
        agent_static_rendezvous_announce_failure(rendezvous->fixed_nodes);
    }
}

/* A job of fixed nodes cannot go on without one. */
void agent_rendezvous_announce_leave(struct agent_rendezvous *rendezvous) {
    if (rendezvous->changing_nodes != NULL) {
        agent_dynamic_rendezvous_announce_leave(rendezvous->changing_nodes);
    } else {
        agent_rendezvous_announce_failure(rendezvous, NULL);
    }
}

void agent_rendezvous_announce_success(struct agent_rendezvous *rendezvous) {
    if (rendezvous->changing_nodes != NULL) { /* fixed nodes have learnt it in the exit barrier */
        agent_dynamic_rendezvous_announce_success(rendezvous->changing_nodes);
    }
}

void agent_rendezvous_note_signal(struct agent_rendezvous *rendezvous) {
    rendezvous->is_stopped = true;
}

void agent_rendezvous_settle(
    struct agent_rendezvous *rendezvous, void (*settled)(void *context), void *context) {
    if (rendezvous->changing_nodes != NULL) {
        agent_dynamic_rendezvous_settle(rendezvous->changing_nodes, settled, context);
    } else if (rendezvous->fixed_nodes != NULL) {
        agent_static_rendezvous_settle(rendezvous->fixed_nodes, settled, context);
    } else {
        if (!rendezvous->is_stopped) {
            rendezvous_diary_close(&rendezvous->diary, &rendezvous->me, true);
        }
        settled(context);
    }
}
