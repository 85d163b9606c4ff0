/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "dynamic_fixture.h"

/* What a round's nodes tell each other is core/round_exchange's test; here, that it gets through.
 */

static bool all_have_joined(const struct dynamic_cluster *cluster) {
    return cluster->nodes[0].joined_count == 1 && cluster->nodes[1].joined_count == 1;
}

static bool the_first_has_passed_the_barrier(const struct dynamic_cluster *cluster) {
    return cluster->nodes[0].barrier_passed_count == 1;
}

static bool the_first_was_called_back(const struct dynamic_cluster *cluster) {
    return cluster->nodes[0].round_over_count == 1;
}

static void set_up_two(struct dynamic_cluster *cluster) {
    dynamic_cluster_init(cluster, 2);
    dynamic_start_node(cluster, 0);
    dynamic_start_node(cluster, 1);
    dynamic_await(cluster, all_have_joined);
}

static void ranks_count_the_workers_of_every_node(void **state) {
    (void)state;
    struct dynamic_cluster cluster;
    set_up_two(&cluster);
    assert_int_equal(cluster.nodes[0].placement.ranks.world_size, 3);
    assert_int_equal(cluster.nodes[1].placement.ranks.base_rank, 1);
    assert_int_equal(cluster.nodes[1].placement.local_world_size, 2);
    dynamic_cluster_clear(&cluster);
}

static void a_finished_node_is_held_until_the_last_has_finished(void **state) {
    (void)state;
    struct dynamic_cluster cluster;
    set_up_two(&cluster);
    agent_rendezvous_enter_barrier(cluster.nodes[0].rendezvous);
    event_loop_run_ready(cluster.loop);
    assert_int_equal(cluster.nodes[0].barrier_passed_count, 0);
    agent_rendezvous_enter_barrier(cluster.nodes[1].rendezvous);
    dynamic_await(&cluster, the_first_has_passed_the_barrier);
    dynamic_cluster_clear(&cluster);
}

static void a_finished_node_is_called_back_when_another_fails(void **state) {
    (void)state;
    struct dynamic_cluster cluster;
    set_up_two(&cluster);
    agent_rendezvous_enter_barrier(cluster.nodes[0].rendezvous);
    agent_rendezvous_announce_restart(cluster.nodes[1].rendezvous, NULL);
    dynamic_await(&cluster, the_first_was_called_back);
    assert_int_equal(cluster.nodes[0].barrier_failed_count, 0);
    dynamic_cluster_clear(&cluster);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(ranks_count_the_workers_of_every_node),
    cmocka_unit_test(a_finished_node_is_held_until_the_last_has_finished),
    cmocka_unit_test(a_finished_node_is_called_back_when_another_fails),
};

TEST_MAIN(tests)
