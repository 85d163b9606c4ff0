/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "agent/agent_store_host.h"
#include "dynamic_fixture.h"

static bool two_have_joined(const struct dynamic_cluster *cluster) {
    return cluster->nodes[0].placement.group_world_size == 2 &&
           cluster->nodes[1].placement.group_world_size == 2;
}

static bool the_first_was_told_that_the_round_is_over(const struct dynamic_cluster *cluster) {
    return cluster->nodes[0].round_over_count == 1;
}

static bool the_host_is_settled(const struct dynamic_cluster *cluster) {
    return cluster->nodes[0].is_settled;
}

static void set_up_two(struct dynamic_cluster *cluster) {
    dynamic_cluster_init(cluster, 1);
    dynamic_start_node(cluster, 0);
    dynamic_start_node(cluster, 1);
    dynamic_await(cluster, two_have_joined);
}

static void a_node_that_vanishes_is_missed_at_once(void **state) {
    (void)state;
    struct dynamic_cluster cluster;
    set_up_two(&cluster);
    dynamic_stop_node(&cluster.nodes[1]);
    dynamic_await(&cluster, the_first_was_told_that_the_round_is_over);
    dynamic_cluster_clear(&cluster);
}

static void the_host_stays_until_the_others_have_left(void **state) {
    (void)state;
    struct dynamic_cluster cluster;
    set_up_two(&cluster);
    agent_rendezvous_settle(cluster.nodes[0].rendezvous, dynamic_settled, &cluster.nodes[0]);
    event_loop_run_ready(cluster.loop);
    assert_false(cluster.nodes[0].is_settled);
    dynamic_stop_node(&cluster.nodes[1]);
    dynamic_await(&cluster, the_host_is_settled);
    dynamic_cluster_clear(&cluster);
}

static void nobody_gone(void *context, const struct node_identity *identity, bool has_finished) {
    (void)context;
    (void)identity;
    (void)has_finished;
}

/* Whether a node with these settings opens the store's port. */
static enum failure_code try_host(struct dynamic_cluster *cluster, const char *host,
    enum launch_is_host is_host, bool *out_is_host) {
    struct launch_config config = cluster->agent.config;
    struct failure failure = {0};
    struct agent_store_host *store = NULL;
    char *copy = memory_duplicate_string(host);
    rendezvous_settings_init(&config.dynamic.settings);
    config.dynamic.host = copy;
    config.dynamic.port = cluster->port;
    config.dynamic.is_host = is_host;
    struct agent_store_host_settings settings = {
        .config = &config, .run_id = "job", .gone = nobody_gone};
    enum failure_code code = agent_store_host_new(cluster->loop, &settings, &store, &failure);
    *out_is_host = store != NULL;
    agent_store_host_free(store);
    free(copy);
    return code;
}

static void who_hosts_is_told_or_found_by_the_endpoint(void **state) {
    (void)state;
    struct dynamic_cluster cluster;
    bool is_host;
    dynamic_cluster_init(&cluster, 1);
    assert_int_equal(try_host(&cluster, "localhost", LAUNCH_IS_HOST_UNSET, &is_host), FAILURE_NONE);
    assert_true(is_host);
    assert_int_equal(try_host(&cluster, "localhost", LAUNCH_IS_HOST_NO, &is_host), FAILURE_NONE);
    assert_false(is_host);
    assert_int_equal(try_host(&cluster, "192.0.2.1", LAUNCH_IS_HOST_UNSET, &is_host), FAILURE_NONE);
    assert_false(is_host);
    assert_int_equal(try_host(&cluster, "192.0.2.1", LAUNCH_IS_HOST_YES, &is_host), FAILURE_NONE);
    assert_true(is_host);
    dynamic_cluster_clear(&cluster);
}

static void a_port_that_is_taken_makes_a_client_of_who_was_not_told_to_host(void **state) {
    (void)state;
    struct dynamic_cluster cluster;
    bool is_host;
    int fd;
    int port;
    dynamic_cluster_init(&cluster, 1);
    assert_int_equal(tcp_listener_open(NULL, cluster.port, &fd, &port, NULL), FAILURE_NONE);
    assert_int_equal(try_host(&cluster, "localhost", LAUNCH_IS_HOST_UNSET, &is_host), FAILURE_NONE);
    assert_false(is_host);
    assert_int_not_equal(
        try_host(&cluster, "localhost", LAUNCH_IS_HOST_YES, &is_host), FAILURE_NONE);
    close(fd);
    dynamic_cluster_clear(&cluster);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_node_that_vanishes_is_missed_at_once),
    cmocka_unit_test(the_host_stays_until_the_others_have_left),
    cmocka_unit_test(who_hosts_is_told_or_found_by_the_endpoint),
    cmocka_unit_test(a_port_that_is_taken_makes_a_client_of_who_was_not_told_to_host),
};

TEST_MAIN(tests)
