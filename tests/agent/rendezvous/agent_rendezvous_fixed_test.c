/* SPDX-License-Identifier: BSD-3-Clause */
/* Fixed nodes, each whole but for its workers, over a real store. What they decide is tested in
 * core; here, that it gets through. */
#include "unit.h"

#include "cluster_fixture.h"

static bool both_have_joined(const struct cluster *cluster) {
    return cluster->nodes[0].joined_count == 1 && cluster->nodes[1].joined_count == 1;
}

static bool both_have_joined_again(const struct cluster *cluster) {
    return cluster->nodes[0].joined_count == 2 && cluster->nodes[1].joined_count == 2;
}

static bool the_first_has_trouble(const struct cluster *cluster) {
    return cluster_knowledge(cluster, 0)->trouble != NULL;
}

static bool the_second_has_trouble(const struct cluster *cluster) {
    return cluster_knowledge(cluster, 1)->trouble != NULL;
}

static bool both_have_passed_the_barrier(const struct cluster *cluster) {
    return cluster->nodes[0].barrier_passed_count == 1 &&
           cluster->nodes[1].barrier_passed_count == 1;
}

static bool both_are_settled(const struct cluster *cluster) {
    return cluster->settled_count == 2;
}

static void set_up_cluster(struct cluster *cluster, int max_restarts) {
    cluster_init(cluster, MEMBERSHIP_FIXED, 2);
    cluster->site.agent.config.store_timeout = duration_from_seconds(30);
    cluster->max_restarts = max_restarts;
    cluster_start_node(cluster, 0);
    cluster_start_node(cluster, 1);
    cluster_await(cluster, both_have_joined);
}

TEST(nodes_of_different_size_share_the_ranks) {
    struct cluster cluster;
    set_up_cluster(&cluster, 0);
    for (int rank = 0; rank < 2; rank++) {
        const struct node_placement *placement = cluster_placement(&cluster, rank);
        assert_int_equal(placement->ranks.world_size, 3);
        assert_int_equal(placement->ranks.base_rank, rank);
        assert_int_equal(placement->group_rank, rank);
        assert_int_equal(placement->master_port, cluster.site.port);
    }
    cluster_clear(&cluster);
}

TEST(restart_anywhere_is_a_restart_everywhere) {
    struct cluster cluster;
    set_up_cluster(&cluster, 1);
    cluster_exit(&cluster.nodes[1], 0, 3);
    cluster_await(&cluster, both_have_joined_again);
    assert_int_equal(cluster.nodes[0].restart_to, 1);
    assert_int_equal(cluster.nodes[1].restart_to, 0);
    assert_int_equal(cluster_placement(&cluster, 0)->attempt, 1);
    assert_int_equal(cluster_placement(&cluster, 1)->attempt, 1);
    cluster_clear(&cluster);
}

TEST(failure_anywhere_is_known_everywhere) {
    struct cluster cluster;
    set_up_cluster(&cluster, 0);
    cluster_exit(&cluster.nodes[1], 0, 3);
    cluster_await(&cluster, the_first_has_trouble);
    assert_non_null(strstr(cluster_knowledge(&cluster, 0)->trouble, "node 1"));
    cluster_clear(&cluster);
}

TEST(nodes_leave_together) {
    struct cluster cluster;
    set_up_cluster(&cluster, 0);
    cluster_finish_workers(&cluster.nodes[1]);
    event_loop_run_ready(cluster.site.loop);
    assert_int_equal(cluster.nodes[1].barrier_passed_count, 0);
    cluster_finish_workers(&cluster.nodes[0]);
    cluster_await(&cluster, both_have_passed_the_barrier);
    cluster_await(&cluster, both_are_settled);
    cluster_clear(&cluster);
}

TEST(lost_store_host_is_a_failed_peer) {
    struct cluster cluster;
    set_up_cluster(&cluster, 0);
    cluster_stop_node(&cluster.nodes[0]);
    cluster_await(&cluster, the_second_has_trouble);
    cluster_clear(&cluster);
}
