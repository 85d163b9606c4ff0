/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole nodes of one job in one process, on one loop: each decides with a real node machine and
 * performs with a real agent_rendezvous; only its workers are made up. They run from the moment
 * they are started until a test lets one exit, and end as soon as they are signalled. */
#ifndef MUSTER_TESTS_AGENT_CLUSTER_FIXTURE_H
#define MUSTER_TESTS_AGENT_CLUSTER_FIXTURE_H

#include <signal.h>

#include "site_fixture.h"

struct cluster;

struct cluster_node {
    struct cluster *cluster;
    struct site_node *site;
    struct node_machine *machine;
    struct agent_rendezvous *rendezvous;
    bool is_queueing;
    int joined_count;
    int round_over_count;
    int barrier_passed_count;
    int barrier_failed_count;
    int restart_to;       /* what a peer asked for */
    char root_cause[32];  /* host of the failure that was learnt last */
    int settled_position; /* 1: it was settled before all others; 0: it is not yet */
};

struct cluster {
    struct site site;
    enum membership_kind kind;
    int minimum; /* of nodes that come and go; the number of fixed nodes */
    int max_restarts;
    int settled_count;
    void (*recorded)(void *context, const struct event_rendezvous *record); /* or NULL */
    void *recorded_context;
    struct cluster_node nodes[SITE_NODES_MAXIMUM];
    bool (*is_reached)(const struct cluster *cluster);
};

static inline const struct membership_knowledge *cluster_knowledge(
    const struct cluster *cluster, int index) {
    return node_machine_knowledge(cluster->nodes[index].machine);
}

static inline const struct node_placement *cluster_placement(
    const struct cluster *cluster, int index) {
    return &cluster_knowledge(cluster, index)->placement;
}

static inline void cluster_post(void *context, const struct node_event *event);

static inline void cluster_post_agent(struct cluster_node *node, struct agent_event event) {
    cluster_post(node, &(struct node_event){.part = NODE_AGENT, .agent = event});
}

static inline void cluster_post_membership(
    struct cluster_node *node, struct membership_event event) {
    cluster_post(node, &(struct node_event){.part = NODE_MEMBERSHIP, .membership = event});
}

/* What is counted: what the agent is told. */
static inline void cluster_note(struct cluster_node *node, const struct node_event *event) {
    if (event->part == NODE_AGENT) {
        enum agent_event_kind kind = event->agent.kind;
        node->joined_count += kind == AGENT_EVENT_JOINED ? 1 : 0;
        node->round_over_count += kind == AGENT_EVENT_ROUND_OVER ? 1 : 0;
        node->barrier_passed_count += kind == AGENT_EVENT_BARRIER_PASSED ? 1 : 0;
        node->barrier_failed_count += kind == AGENT_EVENT_BARRIER_FAILED ? 1 : 0;
        node->restart_to =
            kind == AGENT_EVENT_PEER_RESTART ? event->agent.attempt : node->restart_to;
    } else if (event->part == NODE_MEMBERSHIP &&
               event->membership.kind == MEMBERSHIP_EVENT_ROOT_CAUSE_LEARNT) {
        snprintf(node->root_cause, sizeof node->root_cause, "%s", event->membership.account->host);
    }
}

/* The made-up workers. */

static inline void cluster_exit(struct cluster_node *node, int local_rank, int code) {
    cluster_post_agent(node, (struct agent_event){.kind = AGENT_EVENT_WORKER_EXITED,
                                 .worker_exited = {.local_rank = local_rank, .exit.value = code}});
}

static inline void cluster_end_workers(struct cluster_node *node, int signal) {
    const struct worker_group *workers = &node_machine_agent(node->machine)->workers;
    for (size_t rank = 0; rank < workers->count; rank++) {
        if (workers->states[rank] == WORKER_RUNNING) {
            cluster_post_agent(node, (struct agent_event){.kind = AGENT_EVENT_WORKER_EXITED,
                                         .worker_exited = {.local_rank = (int)rank,
                                             .exit = {.is_signal = true, .value = signal}}});
        }
    }
    cluster_post_agent(node, (struct agent_event){.kind = AGENT_EVENT_ALL_GONE});
}

/* All workers of the node have done their part. */
static inline void cluster_finish_workers(struct cluster_node *node) {
    for (int rank = 0; rank < node->site->preparation.worker_count; rank++) {
        cluster_exit(node, rank, 0);
    }
}

/* Its first worker is to blame, on host0, host1 or host2. */
static inline void cluster_blame(struct cluster_node *node, enum membership_event_kind kind) {
    char host[] = "host0";
    host[4] = (char)('0' + (node - node->cluster->nodes));
    struct failure_account account = {
        .host = host,
        .rank = node_machine_knowledge(node->machine)->placement.ranks.base_rank,
        .exit = {.value = 3},
    };
    cluster_post_membership(node, (struct membership_event){.kind = kind, .account = &account});
}

/* Performing. */

static inline void cluster_perform_agents(
    struct cluster_node *node, const struct agent_effect *effect) {
    switch ((int)effect->kind) {
    case AGENT_EFFECT_START_WORKERS:
        cluster_post_agent(node, (struct agent_event){.kind = AGENT_EVENT_WORKERS_STARTED});
        break;
    case AGENT_EFFECT_SIGNAL_WORKERS:
        cluster_end_workers(node, effect->signal);
        break;
    case AGENT_EFFECT_ANNOUNCE_RESTART:
        cluster_blame(node, MEMBERSHIP_EVENT_RESTART_ASKED);
        break;
    case AGENT_EFFECT_DOUBT_FAILURE:
        cluster_blame(node, MEMBERSHIP_EVENT_DOUBT_ASKED);
        break;
    case AGENT_EFFECT_ANNOUNCE_FAILURE:
        cluster_blame(node, MEMBERSHIP_EVENT_FAILURE_ASKED);
        break;
    case AGENT_EFFECT_FINISH:
        cluster_post_membership(
            node, (struct membership_event){.kind = MEMBERSHIP_EVENT_END_ASKED});
        break;
    default:
        break; /* no worker is slow, so no deadline is */
    }
}

static inline void cluster_perform(struct cluster_node *node, const struct node_effect *effect) {
    if (effect->part == NODE_AGENT) {
        cluster_perform_agents(node, &effect->agent);
        return;
    }
    agent_rendezvous_perform(node->rendezvous, effect);
    if (effect->part == NODE_MEMBERSHIP && effect->membership.kind == MEMBERSHIP_EFFECT_SETTLED) {
        node->settled_position = ++node->cluster->settled_count;
    }
}

static inline void cluster_step(struct cluster_node *node) {
    struct node_effects effects;
    const struct node_event *event = node_machine_next(node->machine);
    cluster_note(node, event);
    agent_rendezvous_note_event(node->rendezvous, event);
    node_machine_step(node->machine, &effects);
    for (size_t i = 0; i < effects.count; i++) {
        agent_rendezvous_note_effect(node->rendezvous, &effects.items[i]);
        if (!effects.items[i].is_internal) {
            cluster_perform(node, &effects.items[i]);
        }
    }
}

static inline void cluster_run_queue(struct cluster_node *node) {
    node->is_queueing = true;
    while (node_machine_next(node->machine) != NULL) {
        cluster_step(node);
    }
    node->is_queueing = false;
    if (node->cluster->is_reached != NULL && node->cluster->is_reached(node->cluster)) {
        event_loop_stop(node->cluster->site.loop);
    }
}

static inline void cluster_post(void *context, const struct node_event *event) {
    struct cluster_node *node = context;
    struct event_loop *loop = node->cluster->site.loop;
    assert_non_null(node->machine); /* nothing is told any more once a node is gone */
    node_machine_post(node->machine, event, event_loop_now(loop), event_loop_wall_time(loop));
    if (!node->is_queueing) {
        cluster_run_queue(node);
    }
}

/* Life. */

static inline void cluster_init(struct cluster *cluster, enum membership_kind kind, int minimum) {
    *cluster = (struct cluster){.kind = kind, .minimum = minimum};
    site_init(&cluster->site);
}

static inline struct site_node *cluster_make_site_node(struct cluster *cluster, int index) {
    switch (cluster->kind) {
    case MEMBERSHIP_CHANGING:
        return site_make_changing(&cluster->site, index, cluster->minimum);
    case MEMBERSHIP_FIXED:
        return site_make_fixed(&cluster->site, index, cluster->minimum);
    case MEMBERSHIP_ALONE:
    case MEMBERSHIP_KIND_COUNT:
        break;
    }
    return site_make_alone(&cluster->site);
}

/* The node joins the job. */
static inline void cluster_start_node(struct cluster *cluster, int index) {
    struct cluster_node *node = &cluster->nodes[index];
    node->cluster = cluster;
    cluster->site.agent.config.max_restarts = cluster->max_restarts;
    node->site = cluster_make_site_node(cluster, index);
    node->machine = node_machine_new(&node->site->node.node);
    node->is_queueing = true;
    node->site->settings.machine = node->machine;
    node->site->settings.mailbox = (struct agent_mailbox){cluster_post, node};
    node->site->settings.recorded = cluster->recorded;
    node->site->settings.recorded_context = cluster->recorded_context;
    assert_int_equal(
        agent_rendezvous_new(cluster->site.loop, &node->site->settings, &node->rendezvous, NULL),
        FAILURE_NONE);
    cluster_post_agent(node, (struct agent_event){.kind = AGENT_EVENT_START});
    cluster_run_queue(node);
}

/* Its process dies, as far as the others can tell. */
static inline void cluster_stop_node(struct cluster_node *node) {
    struct node_machine *machine = node->machine;
    node->machine = NULL;
    agent_rendezvous_free(node->rendezvous);
    node->rendezvous = NULL;
    node_machine_free(machine);
}

static inline void cluster_clear(struct cluster *cluster) {
    for (int i = SITE_NODES_MAXIMUM - 1; i >= 0; i--) {
        cluster_stop_node(&cluster->nodes[i]);
    }
    site_clear(&cluster->site);
}

/* Runs until `is_reached` holds. */
static inline void cluster_await(
    struct cluster *cluster, bool (*is_reached)(const struct cluster *cluster)) {
    struct site *site = &cluster->site;
    if (is_reached(cluster)) {
        return;
    }
    cluster->is_reached = is_reached;
    event_timer_set(site->patience,
        instant_after(event_loop_now(site->loop), duration_from_seconds(SITE_PATIENCE_SECONDS)));
    event_loop_run(site->loop);
    event_timer_stop(site->patience);
    cluster->is_reached = NULL;
    assert_true(is_reached(cluster));
}

static inline void cluster_signal(struct cluster_node *node, int signal) {
    cluster_post_agent(
        node, (struct agent_event){.kind = AGENT_EVENT_SIGNAL_RECEIVED, .signal = signal});
}

#endif
