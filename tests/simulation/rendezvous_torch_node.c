/* SPDX-License-Identifier: BSD-3-Clause */
/* A node of torchrun's kind: one operation at a time, each a loop of "sync, decide, change, sync",
 * with a second's sleep when there is nothing to do; a heartbeat every interval and a look at the
 * wait list every second while its workers run. Silent in its exit barrier. Follows
 * _DistributedRendezvousOpExecutor.run and DynamicRendezvousHandler in
 * torch/distributed/elastic/rendezvous/dynamic_rendezvous.py and _invoke_run in
 * torch/distributed/elastic/agent/server/api.py. */
#include "rendezvous_parts.h"

#include <stdlib.h>

#include "base/memory.h"
#include "core/rendezvous_decision.h"

#define ROLLBACK_SECONDS 5

enum torch_operation { TORCH_NOTHING, TORCH_EXIT, TORCH_JOIN, TORCH_CLOSE, TORCH_BEAT, TORCH_LOOK };

struct cluster_torch {
    enum torch_operation operation;
    struct rendezvous_state state; /* as it knows it, without those it thinks dead */
    bool is_dirty;
    bool is_beat_due;
    int64_t deadline;
    uint64_t life; /* of the operation */
};

struct cluster_torch *cluster_torch_new(void) {
    return memory_allocate(sizeof(struct cluster_torch));
}

void cluster_torch_free(struct cluster_torch *torch) {
    if (torch != NULL) {
        rendezvous_state_clear(&torch->state);
        free(torch);
    }
}

static void sync(struct cluster *cluster, struct cluster_node *node) {
    struct cluster_torch *torch = node->torch;
    if (node->connection == NULL) {
        return;
    }
    if (torch->is_dirty) {
        cluster_ask_write(cluster, node, &torch->state, true);
    } else {
        cluster_ask_fetch(cluster, node);
    }
    torch->is_dirty = false;
}

static void begin(
    struct cluster *cluster, struct cluster_node *node, enum torch_operation operation) {
    node->torch->operation = operation;
    node->torch->is_dirty = false;
    node->torch->life++;
    sync(cluster, node);
}

/* _sanitize. */
static void sanitize(struct cluster *cluster, struct cluster_node *node) {
    const struct rendezvous_settings *settings = &cluster->settings.rendezvous;
    struct rendezvous_state *state = &node->torch->state;
    int64_t oldest = cluster_wall(cluster, node).nanoseconds -
                     settings->keep_alive_interval.nanoseconds * settings->keep_alive_max_attempt;
    for (size_t i = 0; i < state->count;) {
        struct node_identity identity = state->nodes[i].identity;
        if (state->nodes[i].has_heartbeat && state->nodes[i].heartbeat.nanoseconds < oldest) {
            cluster_note(cluster, node, "takes %s for dead", identity.address);
            rendezvous_state_expel(state, settings, &identity);
        } else {
            i++;
        }
    }
}

static enum rendezvous_action decide(struct cluster *cluster, struct cluster_node *node) {
    struct cluster_torch *torch = node->torch;
    const struct rendezvous_settings *settings = &cluster->settings.rendezvous;
    const struct rendezvous_node *self = rendezvous_state_find(&torch->state, &node->identity);
    int64_t wall = cluster_wall(cluster, node).nanoseconds;
    struct rendezvous_context context = {
        .node = &node->identity,
        .state = &torch->state,
        .settings = settings,
        .is_late = cluster->now > torch->deadline,
        .is_too_late = cluster->now > torch->deadline + ROLLBACK_SECONDS * CLUSTER_SECOND,
        .is_last_call_over = torch->state.has_deadline && torch->state.deadline.nanoseconds < wall,
        .is_keep_alive_due =
            self != NULL && self->has_heartbeat &&
            self->heartbeat.nanoseconds <= wall - settings->keep_alive_interval.nanoseconds,
    };
    switch (torch->operation) {
    case TORCH_EXIT:
        return rendezvous_decide_exit(&context);
    case TORCH_JOIN:
        return rendezvous_decide_join(&context);
    case TORCH_CLOSE:
        return rendezvous_decide_close(&context);
    case TORCH_BEAT:
        return rendezvous_decide_keep_alive(&context);
    case TORCH_LOOK:
    case TORCH_NOTHING:
        break;
    }
    return RENDEZVOUS_FINISH;
}

/* Its workers run: it looks every second, and beats every interval. */

static void second_passes(struct cluster *cluster, struct cluster_happening *happening) {
    struct cluster_node *node = happening->node;
    struct cluster_torch *torch = node->torch;
    int64_t interval =
        cluster->settings.rendezvous.keep_alive_interval.nanoseconds / CLUSTER_SECOND;
    if (node->phase != CLUSTER_RUNNING || node->run_life != happening->life) {
        return;
    }
    torch->is_beat_due = torch->is_beat_due || happening->number % interval == 0;
    if (torch->operation == TORCH_NOTHING) {
        torch->deadline = cluster->now + cluster->settings.rendezvous.heartbeat_timeout.nanoseconds;
        begin(cluster, node, torch->is_beat_due ? TORCH_BEAT : TORCH_LOOK);
        torch->is_beat_due = false;
    }
    struct cluster_happening *next = cluster_schedule(
        cluster, cluster->now + CLUSTER_SECOND, CLUSTER_AT_NODE, node, second_passes);
    next->life = happening->life;
    next->number = happening->number + 1;
}

static void run(struct cluster *cluster, struct cluster_node *node) {
    cluster_note(cluster, node, "world round %d of %d", (int)node->torch->state.round,
        (int)rendezvous_state_participants(&node->torch->state));
    cluster_enter_world(cluster, node, &node->torch->state);
    struct cluster_happening *first = cluster_schedule(
        cluster, cluster->now + CLUSTER_SECOND, CLUSTER_AT_NODE, node, second_passes);
    first->life = node->run_life;
    first->number = 1;
}

static void join_again(struct cluster *cluster, struct cluster_happening *happening) {
    struct cluster_node *node = happening->node;
    if (node->phase != CLUSTER_STOPPING || node->run_life != happening->life) {
        return;
    }
    if (node->torch->operation != TORCH_NOTHING) { /* its heartbeat is under way */
        cluster_schedule(
            cluster, cluster->now + CLUSTER_MILLISECOND, CLUSTER_AT_NODE, node, join_again)
            ->life = happening->life;
        return;
    }
    cluster_set_phase(node, CLUSTER_JOINING);
    node->torch->deadline = cluster->now + cluster->settings.rendezvous.join_timeout.nanoseconds;
    begin(cluster, node, TORCH_EXIT);
}

void cluster_torch_restart(struct cluster *cluster, struct cluster_node *node) {
    cluster_note(cluster, node, "restarts");
    cluster_set_phase(node, CLUSTER_STOPPING);
    cluster_schedule(cluster, cluster->now + cluster_between(cluster, 1, CLUSTER_SECOND / 5),
        CLUSTER_AT_NODE, node, join_again)
        ->life = node->run_life;
}

static void finish(struct cluster *cluster, struct cluster_node *node) {
    enum torch_operation operation = node->torch->operation;
    node->torch->operation = TORCH_NOTHING;
    if (operation == TORCH_EXIT) {
        begin(cluster, node, TORCH_JOIN);
    } else if (operation == TORCH_JOIN) {
        run(cluster, node);
    } else if (operation == TORCH_CLOSE) {
        cluster_end_node(cluster, node, false);
    } else if (operation == TORCH_LOOK && node->phase == CLUSTER_RUNNING &&
               rendezvous_state_waiting(&node->torch->state) > 0) {
        cluster_torch_restart(cluster, node);
    }
    if (node->phase == CLUSTER_CLOSING && node->torch->operation == TORCH_NOTHING) {
        begin(cluster, node, TORCH_CLOSE);
    }
}

static void wake_up(struct cluster *cluster, struct cluster_happening *happening) {
    struct cluster_torch *torch = happening->node->torch;
    if (torch->operation != TORCH_NOTHING && torch->life == happening->life) {
        sync(cluster, happening->node);
    }
}

static void sleep_a_second(struct cluster *cluster, struct cluster_node *node) {
    cluster_schedule(cluster, cluster->now + CLUSTER_SECOND, CLUSTER_AT_NODE, node, wake_up)->life =
        node->torch->life;
}

static void act(struct cluster *cluster, struct cluster_node *node, enum rendezvous_action action) {
    struct cluster_torch *torch = node->torch;
    rendezvous_apply(&torch->state, &cluster->settings.rendezvous, &node->identity, action,
        cluster_wall(cluster, node));
    if (action == RENDEZVOUS_REMOVE_FROM_REDUNDANCY_LIST) {
        torch->deadline = cluster->now + cluster->settings.rendezvous.join_timeout.nanoseconds;
    }
    torch->is_dirty = true;
    sync(cluster, node);
}

static void proceed(struct cluster *cluster, struct cluster_node *node) {
    enum rendezvous_action action = decide(cluster, node);
    cluster_note(cluster, node, "%s", rendezvous_action_name(action));
    switch (action) {
    case RENDEZVOUS_FINISH:
        finish(cluster, node);
        break;
    case RENDEZVOUS_SYNC:
        sleep_a_second(cluster, node);
        break;
    case RENDEZVOUS_ERROR_CLOSED:
    case RENDEZVOUS_ERROR_TIMEOUT:
    case RENDEZVOUS_GRACEFUL_EXIT:
        cluster_end_node(cluster, node, false);
        break;
    case RENDEZVOUS_KEEP_ALIVE:
    case RENDEZVOUS_ADD_TO_PARTICIPANTS:
    case RENDEZVOUS_ADD_TO_WAIT_LIST:
    case RENDEZVOUS_ADD_TO_REDUNDANCY_LIST:
    case RENDEZVOUS_REMOVE_FROM_PARTICIPANTS:
    case RENDEZVOUS_REMOVE_FROM_WAIT_LIST:
    case RENDEZVOUS_REMOVE_FROM_REDUNDANCY_LIST:
    case RENDEZVOUS_MARK_COMPLETE:
    case RENDEZVOUS_MARK_CLOSED:
        act(cluster, node, action);
        break;
    }
}

void cluster_torch_answer(struct cluster *cluster, struct cluster_node *node,
    const struct rendezvous_state *state_or_null) {
    static const struct rendezvous_state none;
    rendezvous_state_copy(state_or_null == NULL ? &none : state_or_null, &node->torch->state);
    sanitize(cluster, node);
    proceed(cluster, node);
}

void cluster_torch_close(struct cluster *cluster, struct cluster_node *node) {
    node->torch->deadline = cluster->now + cluster->settings.rendezvous.close_timeout.nanoseconds;
    if (node->torch->operation == TORCH_NOTHING) {
        begin(cluster, node, TORCH_CLOSE);
    }
}

static void reach_store(struct cluster *cluster, struct cluster_happening *happening) {
    struct cluster_node *node = happening->node;
    if (!cluster->is_store_up) {
        cluster_schedule(
            cluster, cluster->now + CLUSTER_SECOND / 2, CLUSTER_AT_NODE, node, reach_store);
        return;
    }
    cluster_open(cluster, node);
    node->torch->deadline = cluster->now + cluster->settings.rendezvous.join_timeout.nanoseconds;
    begin(cluster, node, TORCH_EXIT);
}

void cluster_torch_start(struct cluster *cluster, struct cluster_node *node) {
    cluster_schedule(cluster, cluster->now + cluster_between(cluster, 0, CLUSTER_SECOND * 3 / 10),
        CLUSTER_AT_NODE, node, reach_store);
}
