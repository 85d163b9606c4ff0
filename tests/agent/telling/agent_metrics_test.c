/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <stdlib.h>
#include <unistd.h>

#include "agent/telling/agent_metrics.h"
#include "base/memory.h"
#include "host/loop/files.h"
#include "host/remembered_log.h"

#define LABELS "run_id=\"job \\\"7\\\"\",node=\"n0\",role=\"trainer\""

struct fixture {
    struct launch_config config;
    struct agent_preparation preparation;
    struct agent_machine machine;
    struct node_placement placement;
    struct tally worker_store_operations;
    struct event_loop *loop;
    struct remembered_log log;
    struct agent_metrics *metrics;
};

static void find(void *context, struct agent_metrics_facts *out_facts) {
    const struct fixture *fixture = context;
    *out_facts = (struct agent_metrics_facts){.machine = &fixture->machine,
        .placement = &fixture->placement,
        .failed_first = 2,
        .step = 41233,
        .spares = -1};
}

static void begin(struct fixture *fixture) {
    const struct agent_metrics_settings settings = {.config = &fixture->config,
        .preparation = &fixture->preparation,
        .worker_store = &fixture->worker_store_operations,
        .log = &fixture->log.log,
        .find = find,
        .context = fixture};
    fixture->metrics = agent_metrics_new(fixture->loop, &settings);
}

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){
        .config = {.serves_health = true, .max_restarts = 3}, .preparation = {.worker_count = 2}};
    fixture->config.role = memory_duplicate_string("trainer");
    fixture->preparation.run_id = memory_duplicate_string("job \"7\"");
    fixture->preparation.node_name = memory_duplicate_string("n0");
    remembered_log_init(&fixture->log);
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    agent_machine_init(
        &fixture->machine, &(struct agent_settings){.worker_count = 2, .max_restarts = 3});
    begin(fixture);
}

static void tear_down(struct fixture *fixture) {
    agent_metrics_free(fixture->metrics);
    agent_machine_clear(&fixture->machine);
    agent_preparation_clear(&fixture->preparation);
    launch_config_clear(&fixture->config);
    text_clear(&fixture->log.text);
    assert_true(event_loop_free(fixture->loop));
}

static void step(struct fixture *fixture, struct agent_event event) {
    struct agent_effects effects;
    enum agent_phase before = fixture->machine.phase;
    agent_machine_step(&fixture->machine, &event, &effects);
    agent_metrics_step(fixture->metrics, before, &fixture->machine, &event);
}

static bool tells(struct fixture *fixture, const char *line) {
    struct text out = {0};
    agent_metrics_write(fixture->metrics, &out);
    bool is_there = strstr(text_string(&out), line) != NULL;
    text_clear(&out);
    return is_there;
}

TEST(nobody_counts_where_nobody_can_ask) {
    const struct launch_config config = {0};
    const struct agent_metrics_settings settings = {.config = &config};
    struct agent_metrics *metrics = agent_metrics_new(NULL, &settings);
    assert_null(metrics);
    assert_null(agent_metrics_log_bytes(metrics));
    assert_null(agent_metrics_record_store_operations(metrics));
    agent_metrics_step(metrics, AGENT_IDLE, NULL, NULL);
    agent_metrics_watchdog(metrics, EVENT_WATCHDOG_STARTED, NULL, (struct wall_time){0});
    tally_add(agent_metrics_log_bytes(metrics), 1);
    agent_metrics_end(metrics);
    agent_metrics_free(metrics);
}

FIXTURE_TEST(the_agents_life_is_told) {
    assert_true(tells(fixture, "\nmuster_info{" LABELS "} 1\n"));
    assert_true(tells(fixture, "\nmuster_phase{" LABELS ",phase=\"joining\"} 1\n"));
    assert_true(tells(fixture, "\nmuster_workers_running{" LABELS "} 0\n"));
    step(fixture, (struct agent_event){.kind = AGENT_EVENT_START});
    step(fixture,
        (struct agent_event){.kind = AGENT_EVENT_JOINED, .joined = {.ticket = 1, .node_count = 1}});
    step(fixture, (struct agent_event){.kind = AGENT_EVENT_WORKERS_STARTED});
    assert_true(tells(fixture, "\nmuster_phase{" LABELS ",phase=\"running\"} 1\n"));
    assert_true(tells(fixture, "\nmuster_phase{" LABELS ",phase=\"joining\"} 0\n"));
    assert_true(tells(fixture, "\nmuster_workers_running{" LABELS "} 2\n"));
    assert_true(
        tells(fixture, "\nmuster_activity_seconds_count{" LABELS ",activity=\"start\"} 1\n"));
    assert_true(tells(fixture, "\nmuster_restarts_left{" LABELS "} 3\n"));
    assert_false(tells(fixture, "muster_timers_live"));
}

FIXTURE_TEST(what_other_threads_count_is_told) {
    tally_add(agent_metrics_log_bytes(fixture->metrics), 4711);
    tally_add(&fixture->worker_store_operations, 12);
    tally_add(agent_metrics_record_store_operations(fixture->metrics), 34);
    assert_true(tells(fixture, "\nmuster_log_bytes_total{" LABELS "} 4711\n"));
    assert_true(
        tells(fixture, "\nmuster_store_operations_total{" LABELS ",store=\"workers\"} 12\n"));
    assert_true(
        tells(fixture, "\nmuster_store_operations_total{" LABELS ",store=\"rendezvous\"} 34\n"));
}

FIXTURE_TEST(what_is_not_known_is_not_told) {
    assert_false(tells(fixture, "muster_node_rank"));
    assert_false(tells(fixture, "muster_node_clock_offset_seconds"));
    assert_false(tells(fixture, "muster_job_"));
    assert_true(tells(fixture, "\nmuster_node_failed_first_total{" LABELS "} 2\n"));
    assert_true(tells(fixture, "\nmuster_node_step{" LABELS "} 41233\n"));
    fixture->placement = (struct node_placement){.group_rank = 3, .group_world_size = 4};
    assert_true(tells(fixture, "\nmuster_node_rank{" LABELS "} 3\n"));
}

FIXTURE_TEST(a_file_has_the_same_at_the_end) {
    char path[] = "/tmp/muster_metrics_XXXXXX";
    struct bytes content = {0};
    struct text expected = {0};
    close(mkstemp(path));
    agent_metrics_free(fixture->metrics);
    fixture->config.metrics_file = memory_duplicate_string(path);
    begin(fixture);
    agent_metrics_end(fixture->metrics);
    agent_metrics_write(fixture->metrics, &expected);
    assert_int_equal(whole_file_read(path, false, 1 << 20, &content, NULL), FAILURE_NONE);
    assert_int_equal(content.length, expected.length);
    assert_memory_equal(content.data, text_string(&expected), expected.length);
    assert_int_equal(fixture->log.count, 0);
    unlink(path);
    bytes_clear(&content);
    text_clear(&expected);
}
