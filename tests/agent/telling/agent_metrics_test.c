/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <stdlib.h>

#include "agent/telling/agent_metrics.h"
#include "base/memory.h"

struct fixture {
    struct launch_config config;
    struct agent_preparation preparation;
    struct agent_machine machine;
    struct tally worker_store_operations;
    struct agent_metrics *metrics;
};

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){
        .config = {.serves_health = true, .max_restarts = 3}, .preparation = {.worker_count = 2}};
    fixture->preparation.run_id = memory_duplicate_string("job \"7\"");
    agent_machine_init(
        &fixture->machine, &(struct agent_settings){.worker_count = 2, .max_restarts = 3});
    fixture->metrics = agent_metrics_new(
        &fixture->config, &fixture->preparation, &fixture->worker_store_operations);
}

static void tear_down(struct fixture *fixture) {
    agent_metrics_free(fixture->metrics);
    agent_machine_clear(&fixture->machine);
    agent_preparation_clear(&fixture->preparation);
    launch_config_clear(&fixture->config);
}

static void step(struct fixture *fixture, struct agent_event event) {
    struct agent_effects effects;
    enum agent_phase before = fixture->machine.phase;
    agent_machine_step(&fixture->machine, &event, &effects);
    agent_metrics_step(fixture->metrics, before, &fixture->machine, &event);
}

static bool tells(struct fixture *fixture, const char *line) {
    struct text out = {0};
    agent_metrics_write(fixture->metrics, &fixture->machine, NULL, NULL, &out);
    bool is_there = strstr(text_string(&out), line) != NULL;
    text_clear(&out);
    return is_there;
}

TEST(nobody_counts_where_nobody_can_ask) {
    struct launch_config config = {0};
    struct agent_metrics *metrics = agent_metrics_new(&config, NULL, NULL);
    assert_null(metrics);
    assert_null(agent_metrics_log_bytes(metrics));
    assert_null(agent_metrics_record_store_operations(metrics));
    agent_metrics_step(metrics, AGENT_IDLE, NULL, NULL);
    agent_metrics_watchdog(metrics, EVENT_WATCHDOG_STARTED, NULL, (struct wall_time){0});
    tally_add(agent_metrics_log_bytes(metrics), 1);
    agent_metrics_free(metrics);
}

FIXTURE_TEST(the_agents_life_is_told) {
    assert_true(tells(fixture, "\nmuster_info{run_id=\"job \\\"7\\\"\"} 1\n"));
    assert_true(tells(fixture, "\nmuster_phase{phase=\"joining\"} 1\n"));
    assert_true(tells(fixture, "\nmuster_workers_running 0\n"));
    step(fixture, (struct agent_event){.kind = AGENT_EVENT_START});
    step(fixture, (struct agent_event){.kind = AGENT_EVENT_JOINED, .joined = {1, 0, 1}});
    step(fixture, (struct agent_event){.kind = AGENT_EVENT_WORKERS_STARTED});
    assert_true(tells(fixture, "\nmuster_phase{phase=\"running\"} 1\n"));
    assert_true(tells(fixture, "\nmuster_phase{phase=\"joining\"} 0\n"));
    assert_true(tells(fixture, "\nmuster_workers_running 2\n"));
    assert_true(tells(fixture, "\nmuster_activity_seconds_count{activity=\"start\"} 1\n"));
    assert_true(tells(fixture, "\nmuster_restarts_left 3\n"));
    assert_false(tells(fixture, "muster_timers_live"));
}

FIXTURE_TEST(what_other_threads_count_is_told) {
    tally_add(agent_metrics_log_bytes(fixture->metrics), 4711);
    tally_add(&fixture->worker_store_operations, 12);
    tally_add(agent_metrics_record_store_operations(fixture->metrics), 34);
    assert_true(tells(fixture, "\nmuster_log_bytes_total 4711\n"));
    assert_true(tells(fixture, "\nmuster_store_operations_total{store=\"workers\"} 12\n"));
    assert_true(tells(fixture, "\nmuster_store_operations_total{store=\"rendezvous\"} 34\n"));
}
