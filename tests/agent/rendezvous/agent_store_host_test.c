/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "agent/rendezvous/agent_store_host.h"
#include "site_fixture.h"

/* A store host without a rendezvous. */
struct lone_host {
    struct site site;
    struct launch_config config;
    struct agent_store_host *host; /* NULL when it could not be made */
    bool was_told;                 /* now_hosting */
};

static void nobody_gone(void *context, const struct node_identity *identity, bool has_finished) {
    (void)context;
    (void)identity;
    (void)has_finished;
}

static void now_hosting(void *context) {
    struct lone_host *lone = context;
    lone->was_told = true;
    event_loop_stop(lone->site.loop);
}

static enum failure_code start(
    struct lone_host *lone, const char *host, enum launch_is_host is_host) {
    struct failure failure = {0};
    lone->was_told = false;
    lone->config = lone->site.agent.config; /* shares what the fixture owns */
    lone->config.maximum_nodes = 2;
    rendezvous_settings_init(&lone->config.dynamic.settings);
    lone->config.dynamic.host = memory_duplicate_string(host);
    lone->config.dynamic.port = lone->site.port;
    lone->config.dynamic.is_host = is_host;
    struct agent_store_host_settings settings = {
        .config = &lone->config,
        .run_id = "job",
        .now_hosting = now_hosting,
        .gone = nobody_gone,
        .context = lone,
    };
    lone->host = NULL;
    return agent_store_host_new(lone->site.loop, &settings, &lone->host, &failure);
}

static void stop(struct lone_host *lone) {
    agent_store_host_free(lone->host);
    free(lone->config.dynamic.host);
}

TEST(a_port_that_becomes_free_is_taken) {
    struct lone_host lone;
    int fd;
    int port;
    site_init(&lone.site);
    assert_int_equal(tcp_listener_open(NULL, lone.site.port, &fd, &port, NULL), FAILURE_NONE);
    assert_int_equal(start(&lone, "localhost", LAUNCH_IS_HOST_UNSET), FAILURE_NONE);
    assert_false(agent_store_host_is_hosting(lone.host));
    close(fd);
    event_loop_run(lone.site.loop);
    assert_true(lone.was_told);
    assert_true(agent_store_host_is_hosting(lone.host));
    stop(&lone);
    site_clear(&lone.site);
}

TEST(who_has_found_a_store_hosts_none_later) {
    struct lone_host lone;
    int fd;
    int port;
    site_init(&lone.site);
    assert_int_equal(tcp_listener_open(NULL, lone.site.port, &fd, &port, NULL), FAILURE_NONE);
    assert_int_equal(start(&lone, "localhost", LAUNCH_IS_HOST_UNSET), FAILURE_NONE);
    agent_store_host_stop_asking(lone.host);
    agent_store_host_stop_asking(lone.host);
    close(fd);
    event_loop_run(lone.site.loop); /* nothing is left to wait for */
    assert_false(lone.was_told);
    assert_false(agent_store_host_is_hosting(lone.host));
    stop(&lone);
    site_clear(&lone.site);
}

static void count(void *context) {
    ++*(int *)context;
}

TEST(who_hosts_nothing_leaves_at_once) {
    struct lone_host lone;
    int count_of_left = 0;
    site_init(&lone.site);
    assert_int_equal(start(&lone, "localhost", LAUNCH_IS_HOST_NO), FAILURE_NONE);
    agent_store_host_linger(lone.host, 0, duration_from_seconds(1000), count, &count_of_left);
    assert_int_equal(count_of_left, 1);
    stop(&lone);
    site_clear(&lone.site);
}
