/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "agent/agent_rendezvous.h"
#include "agent_fixture.h"

/* Two nodes in one process, on one loop; node 0 hosts the store. */
#define NODE_COUNT 2

struct cluster;

struct node {
    struct cluster *cluster;
    struct agent_preparation preparation;
    struct launch_config config;
    struct agent_rendezvous *rendezvous;
    struct node_placement placement;
    int64_t ticket; /* of the last answer to a join */
    int joined_count;
    int barrier_count;
    int restart_to; /* what a peer asked for */
    char *trouble;
};

struct cluster {
    struct agent_fixture agent;
    struct event_loop *loop;
    struct node nodes[NODE_COUNT];
    int awaited; /* reports until the loop stops */
};

static void report(struct node *node) {
    if (--node->cluster->awaited == 0) {
        event_loop_stop(node->cluster->loop);
    }
}

static void joined(void *context, int64_t ticket, const struct node_placement *placement) {
    struct node *node = context;
    node->ticket = ticket;
    node->placement = *placement;
    node->joined_count++;
    report(node);
}

static void join_failed(void *context, int64_t ticket, const char *reason) {
    struct node *node = context;
    node->ticket = ticket;
    node->trouble = memory_duplicate_string(reason);
    report(node);
}

static void barrier_ended(void *context, bool has_passed) {
    struct node *node = context;
    node->barrier_count += has_passed ? 1 : 0;
    report(node);
}

static void peer_restart(void *context, int attempt) {
    struct node *node = context;
    node->restart_to = attempt;
    report(node);
}

static void peer_failed(void *context, const char *reason) {
    join_failed(context, 0, reason);
}

static void start_node(struct cluster *cluster, int rank, int master_port) {
    struct node *node = &cluster->nodes[rank];
    node->cluster = cluster;
    node->config = cluster->agent.config; /* shares what the fixture owns */
    node->config.maximum_nodes = NODE_COUNT;
    node->config.rendezvous = LAUNCH_RENDEZVOUS_STATIC;
    node->config.node_rank = rank;
    node->config.worker_count = rank + 1;
    node->config.master_port = master_port;
    assert_int_equal(
        agent_prepare(&node->config, &cluster->agent.environment, &node->preparation, NULL),
        FAILURE_NONE);
    struct agent_rendezvous_settings settings = {
        .config = &node->config,
        .preparation = &node->preparation,
        .environment = &cluster->agent.environment,
        .observer =
            {
                .joined = joined,
                .join_failed = join_failed,
                .barrier_ended = barrier_ended,
                .peer_restart = peer_restart,
                .peer_failed = peer_failed,
                .context = node,
            },
    };
    assert_int_equal(
        agent_rendezvous_new(cluster->loop, &settings, &node->rendezvous, NULL), FAILURE_NONE);
}

static void await(struct cluster *cluster, int reports) {
    cluster->awaited = reports;
    event_loop_run(cluster->loop);
}

static int free_port(void) {
    /* node 1 must know the port before node 0 has bound it, as a static job's user does */
    return 20000 + (int)(getpid() % 9000);
}

/* Both nodes have joined attempt 0. */
static void set_up(struct cluster *cluster) {
    *cluster = (struct cluster){0};
    agent_fixture_init(&cluster->agent, 1, "exit 0");
    cluster->agent.config.master_host = memory_duplicate_string("127.0.0.1");
    cluster->agent.config.run_id = memory_duplicate_string("none");
    assert_int_equal(event_loop_new(&cluster->loop, NULL), FAILURE_NONE);
    for (int rank = 0; rank < NODE_COUNT; rank++) {
        start_node(cluster, rank, free_port());
        agent_rendezvous_join(cluster->nodes[rank].rendezvous, 1, 0);
    }
    await(cluster, NODE_COUNT);
}

static void tear_down(struct cluster *cluster) {
    for (int rank = NODE_COUNT - 1; rank >= 0; rank--) {
        agent_rendezvous_free(cluster->nodes[rank].rendezvous);
        agent_preparation_clear(&cluster->nodes[rank].preparation);
        free(cluster->nodes[rank].trouble);
    }
    assert_true(event_loop_free(cluster->loop));
    agent_fixture_clear(&cluster->agent);
}

static void nodes_of_different_size_share_the_ranks(void **state) {
    (void)state;
    struct cluster cluster;
    set_up(&cluster);
    for (int rank = 0; rank < NODE_COUNT; rank++) {
        const struct node_placement *placement = &cluster.nodes[rank].placement;
        assert_int_equal(cluster.nodes[rank].joined_count, 1);
        assert_int_equal(cluster.nodes[rank].ticket, 1);
        assert_int_equal(placement->ranks.world_size, 3);
        assert_int_equal(placement->ranks.base_rank, rank);
        assert_int_equal(placement->group_rank, rank);
        assert_int_equal(placement->master_port, cluster.nodes[0].placement.master_port);
    }
    tear_down(&cluster);
}

static void restart_anywhere_is_a_restart_everywhere(void **state) {
    (void)state;
    struct cluster cluster;
    set_up(&cluster);
    agent_rendezvous_announce_restart(cluster.nodes[1].rendezvous, NULL);
    agent_rendezvous_join(cluster.nodes[1].rendezvous, 2, 1);
    await(&cluster, 1);
    assert_int_equal(cluster.nodes[0].restart_to, 1);
    agent_rendezvous_join(cluster.nodes[0].rendezvous, 2, 1);
    await(&cluster, NODE_COUNT);
    assert_int_equal(cluster.nodes[0].placement.attempt, 1);
    assert_int_equal(cluster.nodes[1].placement.attempt, 1);
    assert_int_equal(cluster.nodes[1].ticket, 2);
    tear_down(&cluster);
}

static void failure_anywhere_is_known_everywhere(void **state) {
    (void)state;
    struct cluster cluster;
    set_up(&cluster);
    agent_rendezvous_announce_failure(cluster.nodes[1].rendezvous, NULL);
    await(&cluster, 1);
    assert_non_null(cluster.nodes[0].trouble);
    assert_non_null(strstr(cluster.nodes[0].trouble, "node 1"));
    tear_down(&cluster);
}

static void nodes_leave_together(void **state) {
    (void)state;
    struct cluster cluster;
    set_up(&cluster);
    agent_rendezvous_enter_barrier(cluster.nodes[1].rendezvous);
    assert_int_equal(cluster.nodes[1].barrier_count, 0);
    agent_rendezvous_enter_barrier(cluster.nodes[0].rendezvous);
    await(&cluster, NODE_COUNT);
    assert_int_equal(cluster.nodes[0].barrier_count, 1);
    assert_int_equal(cluster.nodes[1].barrier_count, 1);
    tear_down(&cluster);
}

static void lost_store_host_is_a_failed_peer(void **state) {
    (void)state;
    struct cluster cluster;
    set_up(&cluster);
    agent_rendezvous_free(cluster.nodes[0].rendezvous);
    cluster.nodes[0].rendezvous = NULL;
    await(&cluster, 1);
    assert_non_null(cluster.nodes[1].trouble);
    tear_down(&cluster);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(nodes_of_different_size_share_the_ranks),
    cmocka_unit_test(restart_anywhere_is_a_restart_everywhere),
    cmocka_unit_test(failure_anywhere_is_known_everywhere),
    cmocka_unit_test(nodes_leave_together),
    cmocka_unit_test(lost_store_host_is_a_failed_peer),
};

TEST_MAIN(tests)
