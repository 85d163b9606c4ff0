/* SPDX-License-Identifier: BSD-3-Clause */
/* Nodes that come and go, each whole but for its workers, over a real store. What they decide is
 * tested in core; here, that it gets through. */
#include "unit.h"

#include "cluster_fixture.h"

static bool three_have_joined(const struct cluster *cluster) {
    int joined = 0;
    for (int i = 0; i < 3; i++) {
        joined += cluster->nodes[i].joined_count > 0 &&
                          cluster_placement(cluster, i)->group_world_size == 3
                      ? 1
                      : 0;
    }
    return joined == 3;
}

static bool all_are_in_the_round_after_a_restart(const struct cluster *cluster) {
    for (int i = 0; i < 3; i++) {
        const struct node_placement *placement = cluster_placement(cluster, i);
        if (placement->attempt != 1 || placement->node == NULL) {
            return false;
        }
    }
    return true;
}

static bool others_have_trouble(const struct cluster *cluster) {
    return cluster_knowledge(cluster, 0)->trouble != NULL &&
           cluster_knowledge(cluster, 2)->trouble != NULL;
}

static bool two_are_in_a_world_of_two(const struct cluster *cluster) {
    return cluster_placement(cluster, 0)->group_world_size == 2 &&
           cluster_placement(cluster, 1)->group_world_size == 2;
}

static bool all_are_settled(const struct cluster *cluster) {
    return cluster->settled_count == 3;
}

static void set_up_three(struct cluster *cluster, int max_restarts) {
    cluster_init(cluster, MEMBERSHIP_CHANGING, 2);
    cluster->max_restarts = max_restarts;
    for (int i = 0; i < 3; i++) {
        cluster_start_node(cluster, i);
    }
    cluster_await(cluster, three_have_joined);
}

TEST(nodes_that_meet_get_ranks_and_one_store) {
    struct cluster cluster;
    set_up_three(&cluster, 0);
    static const int first_ranks[] = {0, 1, 3}; /* nodes have 1, 2 and 3 workers */
    for (int i = 0; i < 3; i++) {
        const struct node_placement *placement = cluster_placement(&cluster, i);
        assert_int_equal(placement->group_rank, i);
        assert_int_equal(placement->ranks.base_rank, first_ranks[i]);
        assert_int_equal(placement->ranks.world_size, 6);
        assert_int_equal(placement->attempt, 0);
        assert_string_equal(placement->master_address, "127.0.0.1");
        assert_int_equal(placement->master_port, cluster_placement(&cluster, 0)->master_port);
    }
    cluster_clear(&cluster);
}

TEST(a_restart_anywhere_is_a_new_round_everywhere_with_a_fresh_store) {
    struct cluster cluster;
    set_up_three(&cluster, 1);
    int port = cluster_placement(&cluster, 0)->master_port;
    cluster_exit(&cluster.nodes[1], 0, 3);
    cluster_await(&cluster, all_are_in_the_round_after_a_restart);
    for (int i = 0; i < 3; i++) {
        assert_int_not_equal(cluster_placement(&cluster, i)->master_port, port);
    }
    assert_int_equal(cluster.nodes[0].round_over_count, 1);
    assert_int_equal(cluster.nodes[1].round_over_count, 0);
    assert_string_equal(cluster.nodes[0].root_cause, "host1");
    cluster_clear(&cluster);
}

TEST(a_final_failure_ends_the_others_and_they_learn_who_failed) {
    struct cluster cluster;
    set_up_three(&cluster, 0);
    cluster_exit(&cluster.nodes[1], 0, 3);
    cluster_await(&cluster, others_have_trouble);
    assert_non_null(strstr(cluster_knowledge(&cluster, 0)->trouble, "rank 1"));
    assert_string_equal(cluster_knowledge(&cluster, 2)->root_cause.host, "host1");
    cluster_clear(&cluster);
}

TEST(a_node_that_leaves_is_missed_by_nobody_for_long) {
    struct cluster cluster;
    set_up_three(&cluster, 0);
    cluster_signal(&cluster.nodes[2], SIGTERM);
    cluster_await(&cluster, two_are_in_a_world_of_two);
    assert_int_equal(cluster_placement(&cluster, 0)->attempt, 0);
    cluster_clear(&cluster);
}

TEST(nodes_that_are_done_leave_together_and_the_host_last) {
    struct cluster cluster;
    set_up_three(&cluster, 0);
    for (int i = 0; i < 3; i++) {
        cluster_finish_workers(&cluster.nodes[i]);
    }
    cluster_await(&cluster, all_are_settled);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(cluster.nodes[i].barrier_passed_count, 1);
    }
    assert_int_equal(cluster.nodes[0].settled_position, 3);
    cluster_clear(&cluster);
}

/* When the store goes. */

static bool one_has_joined(const struct cluster *cluster) {
    return cluster->nodes[0].joined_count == 1;
}

static bool the_first_is_settled(const struct cluster *cluster) {
    return cluster->nodes[0].settled_position > 0;
}

static bool the_second_has_trouble(const struct cluster *cluster) {
    return cluster_knowledge(cluster, 1)->trouble != NULL;
}

static bool the_second_was_told_that_the_round_is_over(const struct cluster *cluster) {
    return cluster->nodes[1].round_over_count == 1;
}

static bool the_second_has_left_the_barrier(const struct cluster *cluster) {
    return cluster->nodes[1].barrier_failed_count == 1;
}

static void set_up_two(struct cluster *cluster) {
    cluster_init(cluster, MEMBERSHIP_CHANGING, 2);
    cluster_start_node(cluster, 0);
    cluster_start_node(cluster, 1);
    cluster_await(cluster, two_are_in_a_world_of_two);
}

TEST(a_late_joiner_of_a_closed_job_is_told_so) {
    struct cluster cluster;
    cluster_init(&cluster, MEMBERSHIP_CHANGING, 1);
    cluster_start_node(&cluster, 0);
    cluster_await(&cluster, one_has_joined);
    cluster_exit(&cluster.nodes[0], 0, 3);
    cluster_await(&cluster, the_first_is_settled);
    cluster_start_node(&cluster, 1);
    cluster_await(&cluster, the_second_has_trouble);
    assert_int_equal(cluster.nodes[1].joined_count, 0);
    assert_string_equal(cluster_knowledge(&cluster, 1)->root_cause.host, "host0");
    cluster_clear(&cluster);
}

TEST(a_node_that_loses_the_store_ends_its_round) {
    struct cluster cluster;
    set_up_two(&cluster);
    cluster_stop_node(&cluster.nodes[0]);
    cluster_await(&cluster, the_second_was_told_that_the_round_is_over);
    cluster_clear(&cluster);
}

/* Its work is done, whatever becomes of the store. */
TEST(a_finished_node_that_loses_the_store_is_released) {
    struct cluster cluster;
    set_up_two(&cluster);
    cluster_finish_workers(&cluster.nodes[1]);
    cluster_stop_node(&cluster.nodes[0]);
    cluster_await(&cluster, the_second_has_left_the_barrier);
    assert_int_equal(cluster.nodes[1].round_over_count, 0);
    cluster_clear(&cluster);
}

TEST(a_node_without_a_connection_settles_at_once) {
    struct cluster cluster;
    set_up_two(&cluster);
    cluster_stop_node(&cluster.nodes[0]);
    cluster_await(&cluster, the_second_was_told_that_the_round_is_over);
    cluster_signal(&cluster.nodes[1], SIGTERM);
    assert_int_equal(cluster.nodes[1].settled_position, 1);
    cluster_clear(&cluster);
}
