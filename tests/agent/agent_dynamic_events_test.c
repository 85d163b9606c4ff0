/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "dynamic_fixture.h"

static bool one_has_joined(const struct dynamic_cluster *cluster) {
    return cluster->nodes[0].joined_count == 1;
}

static bool the_second_has_trouble(const struct dynamic_cluster *cluster) {
    return cluster->nodes[1].trouble != NULL;
}

static bool the_second_was_told_that_the_round_is_over(const struct dynamic_cluster *cluster) {
    return cluster->nodes[1].round_over_count == 1;
}

static bool the_second_has_left_the_barrier(const struct dynamic_cluster *cluster) {
    return cluster->nodes[1].barrier_failed_count == 1;
}

static bool both_have_joined(const struct dynamic_cluster *cluster) {
    return cluster->nodes[0].placement.group_world_size == 2 &&
           cluster->nodes[1].placement.group_world_size == 2;
}

static bool both_have_passed_the_barrier(const struct dynamic_cluster *cluster) {
    return cluster->nodes[0].barrier_passed_count == 1 &&
           cluster->nodes[1].barrier_passed_count == 1;
}

static bool the_first_is_settled(const struct dynamic_cluster *cluster) {
    return cluster->nodes[0].is_settled;
}

static void set_up_two(struct dynamic_cluster *cluster) {
    dynamic_cluster_init(cluster, 2);
    dynamic_start_node(cluster, 0);
    dynamic_start_node(cluster, 1);
    dynamic_await(cluster, both_have_joined);
}

static void a_late_joiner_of_a_closed_job_is_told_so(void **state) {
    (void)state;
    struct dynamic_cluster cluster;
    dynamic_cluster_init(&cluster, 1);
    dynamic_start_node(&cluster, 0);
    dynamic_await(&cluster, one_has_joined);
    agent_rendezvous_announce_failure(cluster.nodes[0].rendezvous, NULL);
    dynamic_start_node(&cluster, 1);
    dynamic_await(&cluster, the_second_has_trouble);
    assert_int_equal(cluster.nodes[1].joined_count, 0);
    dynamic_cluster_clear(&cluster);
}

/* As when a torchrun node has failed for good, which closes the record and says nothing. */
static void a_node_of_a_closed_job_is_told_that_it_cannot_go_on(void **state) {
    (void)state;
    struct dynamic_cluster cluster;
    set_up_two(&cluster);
    agent_rendezvous_enter_barrier(cluster.nodes[0].rendezvous);
    agent_rendezvous_enter_barrier(cluster.nodes[1].rendezvous);
    dynamic_await(&cluster, both_have_passed_the_barrier);
    agent_rendezvous_announce_success(cluster.nodes[0].rendezvous);
    dynamic_join(&cluster.nodes[1]);
    dynamic_await(&cluster, the_second_has_trouble);
    assert_non_null(strstr(cluster.nodes[1].trouble, "workers cannot be started again"));
    assert_null(strstr(cluster.nodes[1].trouble, "--rdzv-id"));
    dynamic_cluster_clear(&cluster);
}

static void a_node_that_loses_the_store_ends_its_round(void **state) {
    (void)state;
    struct dynamic_cluster cluster;
    set_up_two(&cluster);
    dynamic_stop_node(&cluster.nodes[0]);
    dynamic_await(&cluster, the_second_was_told_that_the_round_is_over);
    dynamic_cluster_clear(&cluster);
}

/* Its work is done, whatever becomes of the store. */
static void a_finished_node_that_loses_the_store_is_released(void **state) {
    (void)state;
    struct dynamic_cluster cluster;
    set_up_two(&cluster);
    agent_rendezvous_enter_barrier(cluster.nodes[1].rendezvous);
    dynamic_stop_node(&cluster.nodes[0]);
    dynamic_await(&cluster, the_second_has_left_the_barrier);
    assert_int_equal(cluster.nodes[1].round_over_count, 0);
    dynamic_cluster_clear(&cluster);
}

static void a_node_without_a_connection_settles_at_once(void **state) {
    (void)state;
    struct dynamic_cluster cluster;
    set_up_two(&cluster);
    dynamic_stop_node(&cluster.nodes[0]);
    dynamic_await(&cluster, the_second_was_told_that_the_round_is_over);
    agent_rendezvous_announce_leave(cluster.nodes[1].rendezvous);
    agent_rendezvous_settle(cluster.nodes[1].rendezvous, dynamic_settled, &cluster.nodes[1]);
    assert_true(cluster.nodes[1].is_settled);
    dynamic_cluster_clear(&cluster);
}

static void a_host_that_leaves_does_not_stay_for_long(void **state) {
    (void)state;
    struct dynamic_cluster cluster;
    set_up_two(&cluster);
    agent_rendezvous_announce_leave(cluster.nodes[0].rendezvous);
    agent_rendezvous_settle(cluster.nodes[0].rendezvous, dynamic_settled, &cluster.nodes[0]);
    dynamic_await(&cluster, the_first_is_settled);
    dynamic_cluster_clear(&cluster);
}

/* Its report comes when it has settled: somebody who never leaves must not keep it back. */
static void a_host_whose_job_has_failed_does_not_stay_for_long(void **state) {
    (void)state;
    struct dynamic_cluster cluster;
    set_up_two(&cluster);
    agent_rendezvous_announce_failure(cluster.nodes[0].rendezvous, NULL);
    agent_rendezvous_settle(cluster.nodes[0].rendezvous, dynamic_settled, &cluster.nodes[0]);
    dynamic_await(&cluster, the_first_is_settled); /* half a minute would fail */
    assert_non_null(cluster.nodes[1].trouble);
    dynamic_cluster_clear(&cluster);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_late_joiner_of_a_closed_job_is_told_so),
    cmocka_unit_test(a_node_of_a_closed_job_is_told_that_it_cannot_go_on),
    cmocka_unit_test(a_node_that_loses_the_store_ends_its_round),
    cmocka_unit_test(a_finished_node_that_loses_the_store_is_released),
    cmocka_unit_test(a_node_without_a_connection_settles_at_once),
    cmocka_unit_test(a_host_that_leaves_does_not_stay_for_long),
    cmocka_unit_test(a_host_whose_job_has_failed_does_not_stay_for_long),
};

TEST_MAIN(tests)
