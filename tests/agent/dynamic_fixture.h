/* SPDX-License-Identifier: BSD-3-Clause */
/* Several nodes of one dynamic job in one process, on one loop; node 0 hosts the store. Each is an
 * agent's rendezvous without an agent: what it is told is remembered. */
#ifndef MUSTER_TESTS_AGENT_DYNAMIC_FIXTURE_H
#define MUSTER_TESTS_AGENT_DYNAMIC_FIXTURE_H

#include <stdio.h>
#include <unistd.h>

#include "agent/agent_rendezvous.h"
#include "agent_fixture.h"
#include "host/tcp_listener.h"

#define DYNAMIC_NODES_MAXIMUM 3

struct dynamic_cluster;

struct dynamic_node {
    struct dynamic_cluster *cluster;
    struct agent_preparation preparation;
    struct launch_config config;
    char address[32];
    struct agent_rendezvous *rendezvous;
    struct node_placement placement;
    int64_t ticket;
    int joined_count;
    int round_over_count;
    int barrier_passed_count;
    int barrier_failed_count;
    int job_over_count;
    char *trouble;    /* of join_failed or peer_failed */
    char *root_cause; /* host of the failure that was learnt */
    bool is_settled;
};

struct dynamic_cluster {
    struct agent_fixture agent;
    struct event_loop *loop;
    struct event_timer *patience;
    char host[16]; /* of the endpoint */
    int port;
    int minimum;
    struct dynamic_node nodes[DYNAMIC_NODES_MAXIMUM];
    bool (*is_reached)(const struct dynamic_cluster *cluster);
};

static inline void dynamic_report(struct dynamic_node *node) {
    if (node->cluster->is_reached != NULL && node->cluster->is_reached(node->cluster)) {
        event_loop_stop(node->cluster->loop);
    }
}

static inline void dynamic_joined(
    void *context, int64_t ticket, const struct node_placement *placement) {
    struct dynamic_node *node = context;
    assert_int_equal(ticket, node->ticket);
    node->placement = *placement;
    node->joined_count++;
    dynamic_report(node);
}

static inline void dynamic_peer_failed(void *context, const char *reason) {
    struct dynamic_node *node = context;
    free(node->trouble);
    node->trouble = memory_duplicate_string(reason);
    dynamic_report(node);
}

static inline void dynamic_join_failed(void *context, int64_t ticket, const char *reason) {
    (void)ticket;
    dynamic_peer_failed(context, reason);
}

static inline void dynamic_job_over(void *context) {
    struct dynamic_node *node = context;
    node->job_over_count++;
    dynamic_report(node);
}

static inline void dynamic_barrier_ended(void *context, bool has_passed) {
    struct dynamic_node *node = context;
    node->barrier_passed_count += has_passed ? 1 : 0;
    node->barrier_failed_count += has_passed ? 0 : 1;
    dynamic_report(node);
}

static inline void dynamic_peer_restart(void *context, int attempt) {
    (void)context;
    (void)attempt;
    fail_msg("a dynamic rendezvous tells of rounds, not of attempts");
}

static inline void dynamic_root_cause(void *context, const struct failure_account *account) {
    struct dynamic_node *node = context;
    free(node->root_cause);
    node->root_cause = memory_duplicate_string(account->host);
}

static inline void dynamic_round_over(void *context, const char *reason) {
    struct dynamic_node *node = context;
    (void)reason;
    node->round_over_count++;
    dynamic_report(node);
}

static inline void dynamic_settled(void *context) {
    struct dynamic_node *node = context;
    node->is_settled = true;
    dynamic_report(node);
}

/* A port nobody listens on, and below those the kernel hands out, so that no test beside this one
 * is given it before it is used. */
static inline int dynamic_free_port(void) {
    enum failure_code code = FAILURE_SYSTEM;
    int fd;
    int port = 0;
    for (int tries = 0; code != FAILURE_NONE && tries < 1000; tries++) {
        code = tcp_listener_open(NULL, 20000 + (getpid() * 7 + tries) % 12000, &fd, &port, NULL);
    }
    assert_int_equal(code, FAILURE_NONE);
    close(fd);
    return port;
}

static inline void dynamic_took_too_long(void *context) {
    (void)context;
    fail_msg("what was awaited did not come within 30 s");
}

/* Runs until `is_reached` holds. */
static inline void dynamic_await(
    struct dynamic_cluster *cluster, bool (*is_reached)(const struct dynamic_cluster *cluster)) {
    if (is_reached(cluster)) {
        return;
    }
    cluster->is_reached = is_reached;
    event_timer_set(
        cluster->patience, instant_after(event_loop_now(cluster->loop), duration_from_seconds(30)));
    event_loop_run(cluster->loop);
    event_timer_stop(cluster->patience);
    cluster->is_reached = NULL;
}

static inline void dynamic_join(struct dynamic_node *node) {
    agent_rendezvous_join(node->rendezvous, ++node->ticket, 0);
}

static inline void dynamic_start_node(struct dynamic_cluster *cluster, int index) {
    struct dynamic_node *node = &cluster->nodes[index];
    node->cluster = cluster;
    node->config = cluster->agent.config; /* shares what the fixture owns */
    node->config.rendezvous = LAUNCH_RENDEZVOUS_DYNAMIC;
    node->config.minimum_nodes = cluster->minimum;
    node->config.maximum_nodes = DYNAMIC_NODES_MAXIMUM;
    node->config.worker_count = index + 1;
    snprintf(node->address, sizeof node->address, "127.0.0.%d", index + 1);
    node->config.local_address = node->address;
    struct launch_dynamic *dynamic = &node->config.dynamic;
    rendezvous_settings_init(&dynamic->settings);
    dynamic->settings.minimum_nodes = cluster->minimum;
    dynamic->settings.maximum_nodes = DYNAMIC_NODES_MAXIMUM;
    dynamic->settings.last_call_timeout = duration_from_milliseconds(200);
    dynamic->host = cluster->host;
    dynamic->port = cluster->port;
    dynamic->is_host = index == 0 ? LAUNCH_IS_HOST_YES : LAUNCH_IS_HOST_NO;
    dynamic->read_timeout = duration_from_seconds(60);
    assert_int_equal(
        agent_prepare(&node->config, &cluster->agent.environment, &node->preparation, NULL),
        FAILURE_NONE);
    struct agent_rendezvous_settings settings = {
        .config = &node->config,
        .preparation = &node->preparation,
        .environment = &cluster->agent.environment,
        .observer =
            {
                .joined = dynamic_joined,
                .join_failed = dynamic_join_failed,
                .job_over = dynamic_job_over,
                .barrier_ended = dynamic_barrier_ended,
                .peer_restart = dynamic_peer_restart,
                .peer_failed = dynamic_peer_failed,
                .root_cause_learnt = dynamic_root_cause,
                .round_over = dynamic_round_over,
                .context = node,
            },
    };
    assert_int_equal(
        agent_rendezvous_new(cluster->loop, &settings, &node->rendezvous, NULL), FAILURE_NONE);
    dynamic_join(node);
}

static inline void dynamic_cluster_init(struct dynamic_cluster *cluster, int minimum) {
    *cluster = (struct dynamic_cluster){.host = "127.0.0.1", .minimum = minimum};
    agent_fixture_init(&cluster->agent, 1, "exit 0");
    cluster->agent.config.run_id = memory_duplicate_string("job");
    assert_int_equal(event_loop_new(&cluster->loop, NULL), FAILURE_NONE);
    cluster->patience = event_timer_new(cluster->loop, dynamic_took_too_long, NULL);
    cluster->port = dynamic_free_port();
}

static inline void dynamic_stop_node(struct dynamic_node *node) {
    agent_rendezvous_free(node->rendezvous);
    node->rendezvous = NULL;
}

static inline void dynamic_cluster_clear(struct dynamic_cluster *cluster) {
    for (int i = DYNAMIC_NODES_MAXIMUM - 1; i >= 0; i--) {
        struct dynamic_node *node = &cluster->nodes[i];
        dynamic_stop_node(node);
        agent_preparation_clear(&node->preparation);
        free(node->trouble);
        free(node->root_cause);
    }
    event_timer_free(cluster->patience);
    assert_true(event_loop_free(cluster->loop));
    agent_fixture_clear(&cluster->agent);
}

#endif
