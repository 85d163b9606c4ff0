/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "agent/rendezvous/agent_node_settings.h"
#include "agent_fixture.h"
#include "base/random.h"

struct fixture {
    struct agent_fixture agent;
    struct agent_preparation preparation;
    struct agent_node_settings settings;
};

static void set_up(struct fixture *fixture, enum launch_rendezvous rendezvous, int maximum_nodes) {
    *fixture = (struct fixture){0};
    agent_fixture_init(&fixture->agent, 2, "exit 0");
    struct launch_config *config = &fixture->agent.config;
    config->rendezvous = rendezvous;
    config->maximum_nodes = maximum_nodes;
    config->master_host = memory_duplicate_string("master");
    config->master_port = 29501;
    config->local_address = memory_duplicate_string("node1");
    config->dynamic.host = memory_duplicate_string("host");
    config->dynamic.port = 29400;
    rendezvous_settings_init(&config->dynamic.settings);
}

static const struct node_settings *make(struct fixture *fixture) {
    const struct agent_fixture *agent = &fixture->agent;
    assert_int_equal(
        agent_prepare(&agent->config, &agent->environment, NULL, &fixture->preparation, NULL),
        FAILURE_NONE);
    assert_int_equal(agent_node_settings_make(&agent->config, &fixture->preparation,
                         &agent->environment, &fixture->settings, NULL),
        FAILURE_NONE);
    return &fixture->settings.node;
}

static void make_again(struct fixture *fixture) {
    agent_node_settings_clear(&fixture->settings);
    agent_preparation_clear(&fixture->preparation);
    make(fixture);
}

static void tear_down(struct fixture *fixture) {
    agent_node_settings_clear(&fixture->settings);
    agent_preparation_clear(&fixture->preparation);
    agent_fixture_clear(&fixture->agent);
}

static void assert_seconds(struct duration duration, double seconds) {
    assert_int_equal(duration.nanoseconds, duration_from_seconds(seconds).nanoseconds);
}

FIXTURE_TEST_AFTER(each_machine_has_the_patience_that_was_asked_for,
    set_up(&fixture, LAUNCH_RENDEZVOUS_DYNAMIC, 3)) {
    struct launch_config *config = &fixture->agent.config;
    config->shutdown_timeout = duration_from_seconds(1);
    config->store_timeout = duration_from_seconds(2);
    config->exit_barrier_timeout = duration_from_seconds(3);
    config->settling_time = duration_from_seconds(4);
    config->dynamic.settings.join_timeout = duration_from_seconds(5);
    config->dynamic.settings.close_timeout = duration_from_seconds(6);
    const struct node_settings *node = make(fixture);
    assert_seconds(node->agent.shutdown_timeout, 1);
    assert_seconds(node->round.exit_barrier_timeout, 3);
    assert_seconds(node->membership.settling_time, 4);
    assert_seconds(node->round.timeout, 5);
    assert_seconds(node->rendezvous.rendezvous.close_timeout, 6);
    config->rendezvous = LAUNCH_RENDEZVOUS_STATIC;
    make_again(fixture);
    assert_seconds(fixture->settings.node.round.timeout, 2);
}

FIXTURE_TEST_AFTER(where_a_register_is_nobody_waits_for_a_leaving_node_unless_told_to,
    set_up(&fixture, LAUNCH_RENDEZVOUS_DYNAMIC, 3)) {
    assert_false(make(fixture)->membership.is_hasty);
    fixture->agent.config.dynamic.register_engine = memory_duplicate_string("dir");
    make_again(fixture);
    assert_true(fixture->settings.node.membership.is_hasty);
    fixture->agent.config.has_settling_time = true;
    make_again(fixture);
    assert_false(fixture->settings.node.membership.is_hasty);
}

static bool is_uniform(const char *variable) {
    struct fixture fixture;
    set_up(&fixture, LAUNCH_RENDEZVOUS_DYNAMIC, 3);
    if (variable != NULL) {
        text_list_add(&fixture.agent.environment, variable);
    }
    bool is_round_uniform = make(&fixture)->round.is_uniform;
    tear_down(&fixture);
    return is_round_uniform;
}

TEST(nodes_are_alike_where_the_environment_says_1) {
    assert_false(is_uniform(NULL));
    assert_false(is_uniform("TORCH_ELASTIC_WORKER_IDENTICAL=0"));
    assert_false(is_uniform("TORCH_ELASTIC_WORKER_IDENTICAL=true"));
    assert_true(is_uniform("TORCH_ELASTIC_WORKER_IDENTICAL=1"));
}

FIXTURE_TEST_AFTER(
    every_agent_has_a_name_of_its_own, set_up(&fixture, LAUNCH_RENDEZVOUS_DYNAMIC, 3)) {
    struct node_identity first = make(fixture)->rendezvous.identity;
    uint64_t seed = fixture->settings.node.rendezvous.seed;
    assert_string_equal(first.address, "node1");
    assert_int_equal(first.pid, getpid());
    assert_true(node_identity_is_muster(&first));
    make_again(fixture);
    assert_false(node_identity_equals(&fixture->settings.node.rendezvous.identity, &first));
    assert_int_not_equal(fixture->settings.node.rendezvous.seed, seed);
}

/* After a new connection a node has a new name, which its machine draws. */
FIXTURE_TEST_AFTER(the_next_name_is_another_one, set_up(&fixture, LAUNCH_RENDEZVOUS_DYNAMIC, 3)) {
    struct random random;
    const struct rendezvous_machine_settings *settings = &make(fixture)->rendezvous;
    random_init(&random, settings->seed);
    assert_int_not_equal(
        node_identity_muster_local_id((uint32_t)random_next(&random)), settings->identity.local_id);
}

TEST(the_address_and_the_stores_name_are_the_settings_own) {
    struct fixture fixture;
    set_up(&fixture, LAUNCH_RENDEZVOUS_DYNAMIC, 3);
    const struct node_settings *node = make(&fixture);
    memset(fixture.agent.config.local_address, '?', 5);
    memset(fixture.agent.config.dynamic.host, '?', 4);
    assert_string_equal(node->membership.address, "node1");
    assert_string_equal(node->membership.where, "host:29400");
    agent_node_settings_clear(&fixture.settings);
    assert_null(fixture.settings.node.membership.address);
    tear_down(&fixture); /* clears them again, which does nothing */
}
