/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "dynamic_fixture.h"

static bool three_have_joined(const struct dynamic_cluster *cluster) {
    int joined = 0;
    for (int i = 0; i < 3; i++) {
        const struct dynamic_node *node = &cluster->nodes[i];
        joined += node->joined_count > 0 && node->placement.group_world_size == 3 ? 1 : 0;
    }
    return joined == 3;
}

static bool all_are_in_round_1(const struct dynamic_cluster *cluster) {
    for (int i = 0; i < 3; i++) {
        if (cluster->nodes[i].placement.round != 1) {
            return false;
        }
    }
    return true;
}

static bool others_were_told_that_the_round_is_over(const struct dynamic_cluster *cluster) {
    return cluster->nodes[0].round_over_count == 1 && cluster->nodes[2].round_over_count == 1;
}

static bool two_are_in_a_world_of_two(const struct dynamic_cluster *cluster) {
    return cluster->nodes[0].placement.group_world_size == 2 &&
           cluster->nodes[1].placement.group_world_size == 2;
}

static bool others_have_trouble(const struct dynamic_cluster *cluster) {
    return cluster->nodes[0].trouble != NULL && cluster->nodes[2].trouble != NULL;
}

static bool all_have_passed_the_barrier(const struct dynamic_cluster *cluster) {
    return cluster->nodes[0].barrier_passed_count + cluster->nodes[1].barrier_passed_count +
               cluster->nodes[2].barrier_passed_count ==
           3;
}

static bool all_are_settled(const struct dynamic_cluster *cluster) {
    return cluster->nodes[0].is_settled && cluster->nodes[1].is_settled &&
           cluster->nodes[2].is_settled;
}

static void set_up_three(struct dynamic_cluster *cluster) {
    dynamic_cluster_init(cluster, 2);
    for (int i = 0; i < 3; i++) {
        dynamic_start_node(cluster, i);
    }
    dynamic_await(cluster, three_have_joined);
}

static void nodes_that_meet_get_ranks_and_one_store(void **state) {
    (void)state;
    struct dynamic_cluster cluster;
    set_up_three(&cluster);
    static const int first_ranks[] = {0, 1, 3}; /* nodes have 1, 2 and 3 workers */
    for (int i = 0; i < 3; i++) {
        const struct node_placement *placement = &cluster.nodes[i].placement;
        assert_int_equal(placement->group_rank, i);
        assert_int_equal(placement->ranks.base_rank, first_ranks[i]);
        assert_int_equal(placement->ranks.world_size, 6);
        assert_int_equal(placement->attempt, 0);
        assert_string_equal(placement->master_address, "127.0.0.1");
        assert_int_equal(placement->master_port, cluster.nodes[0].placement.master_port);
    }
    dynamic_cluster_clear(&cluster);
}

static void a_restart_anywhere_is_a_new_round_everywhere_with_a_fresh_store(void **state) {
    (void)state;
    struct dynamic_cluster cluster;
    struct failure_account account = {.host = (char[]){"host1"}, .rank = 2, .exit = {.value = 3}};
    set_up_three(&cluster);
    int port = cluster.nodes[0].placement.master_port;
    agent_rendezvous_announce_restart(cluster.nodes[1].rendezvous, &account);
    dynamic_await(&cluster, others_were_told_that_the_round_is_over);
    for (int i = 0; i < 3; i++) {
        dynamic_join(&cluster.nodes[i]);
    }
    dynamic_await(&cluster, all_are_in_round_1);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(cluster.nodes[i].placement.attempt, 1);
        assert_int_not_equal(cluster.nodes[i].placement.master_port, port);
    }
    assert_int_equal(cluster.nodes[1].round_over_count, 0);
    assert_string_equal(cluster.nodes[0].root_cause, "host1");
    dynamic_cluster_clear(&cluster);
}

static void a_final_failure_ends_the_others_and_they_learn_who_failed(void **state) {
    (void)state;
    struct dynamic_cluster cluster;
    struct failure_account account = {.host = (char[]){"host1"}, .rank = 2, .exit = {.value = 3}};
    set_up_three(&cluster);
    agent_rendezvous_announce_failure(cluster.nodes[1].rendezvous, &account);
    dynamic_await(&cluster, others_have_trouble);
    assert_non_null(strstr(cluster.nodes[0].trouble, "rank 2"));
    assert_string_equal(cluster.nodes[2].root_cause, "host1");
    dynamic_cluster_clear(&cluster);
}

static void a_node_that_leaves_is_missed_by_nobody_for_long(void **state) {
    (void)state;
    struct dynamic_cluster cluster;
    set_up_three(&cluster);
    agent_rendezvous_announce_leave(cluster.nodes[2].rendezvous);
    while (!two_are_in_a_world_of_two(&cluster)) {
        for (int i = 0; i < 2; i++) {
            if (cluster.nodes[i].round_over_count == 1 && cluster.nodes[i].ticket == 1) {
                dynamic_join(&cluster.nodes[i]);
            }
        }
        event_loop_run_ready(cluster.loop);
    }
    assert_int_equal(cluster.nodes[0].placement.attempt, 0);
    dynamic_cluster_clear(&cluster);
}

static void nodes_that_are_done_leave_together_and_the_host_last(void **state) {
    (void)state;
    struct dynamic_cluster cluster;
    set_up_three(&cluster);
    for (int i = 0; i < 3; i++) {
        agent_rendezvous_enter_barrier(cluster.nodes[i].rendezvous);
    }
    dynamic_await(&cluster, all_have_passed_the_barrier);
    for (int i = 0; i < 3; i++) {
        agent_rendezvous_announce_success(cluster.nodes[i].rendezvous);
        agent_rendezvous_settle(cluster.nodes[i].rendezvous, dynamic_settled, &cluster.nodes[i]);
    }
    dynamic_await(&cluster, all_are_settled);
    dynamic_cluster_clear(&cluster);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(nodes_that_meet_get_ranks_and_one_store),
    cmocka_unit_test(a_restart_anywhere_is_a_new_round_everywhere_with_a_fresh_store),
    cmocka_unit_test(a_final_failure_ends_the_others_and_they_learn_who_failed),
    cmocka_unit_test(a_node_that_leaves_is_missed_by_nobody_for_long),
    cmocka_unit_test(nodes_that_are_done_leave_together_and_the_host_last),
};

TEST_MAIN(tests)
