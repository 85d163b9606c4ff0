/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <signal.h>

#include "agent/agent_events.h"
#include "agent_fixture.h"

struct fixture {
    struct agent_fixture job;
    struct agent agent;
};

static void set_up(struct fixture *fixture, const char *command) {
    *fixture = (struct fixture){0};
    agent_fixture_init(&fixture->job, 2, command);
    struct agent *agent = &fixture->agent;
    agent->config = &fixture->job.config;
    agent->environment = &fixture->job.environment;
    agent->sink = log_sink_new("CRITICAL", STDERR_FILENO);
    agent->log = log_sink_log(agent->sink);
    assert_int_equal(event_loop_new(&agent->loop, NULL), FAILURE_NONE);
    agent->deadline = event_timer_new(agent->loop, agent_deadline_passed, agent);
    assert_int_equal(
        agent_prepare(agent->config, agent->environment, &agent->preparation, NULL), FAILURE_NONE);
    struct agent_rendezvous_settings rendezvous = {
        .config = agent->config,
        .preparation = &agent->preparation,
        .environment = agent->environment,
        .log = agent->log,
        .observer = agent_rendezvous_events(agent),
    };
    assert_int_equal(
        agent_rendezvous_new(agent->loop, &rendezvous, &agent->rendezvous, NULL), FAILURE_NONE);
    struct agent_workers_settings workers = {
        .config = agent->config,
        .preparation = &agent->preparation,
        .environment = agent->environment,
        .log = agent->log,
        .descriptor_limit = -1,
        .observer = agent_workers_events(agent),
    };
    assert_int_equal(agent_workers_new(agent->loop, &workers, &agent->workers, NULL), FAILURE_NONE);
    struct agent_settings settings = {2, 0, agent->config->shutdown_timeout};
    agent_machine_init(&agent->machine, &settings);
}

static void tear_down(struct fixture *fixture) {
    struct agent *agent = &fixture->agent;
    agent_workers_free(agent->workers);
    agent_rendezvous_free(agent->rendezvous);
    event_timer_free(agent->deadline);
    assert_true(event_loop_free(agent->loop));
    agent_machine_clear(&agent->machine);
    agent_preparation_clear(&agent->preparation);
    log_sink_free(agent->sink);
    free(agent->queue);
    free(agent->trouble);
    agent_fixture_clear(&fixture->job);
}

static void what_follows_at_once_is_done_before_the_event_is(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture, "exit 0");
    agent_take_event(&fixture.agent, (struct agent_event){.kind = AGENT_EVENT_START}, NULL);
    assert_int_equal(fixture.agent.machine.phase, AGENT_RUNNING); /* joined and started */
    assert_int_equal(fixture.agent.queue_length, 0);
    event_loop_run(fixture.agent.loop);
    assert_int_equal(fixture.agent.machine.phase, AGENT_DONE);
    assert_int_equal(fixture.agent.outcome.kind, AGENT_OUTCOME_SUCCEEDED);
    tear_down(&fixture);
}

static void signal_becomes_the_outcome(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture, "exec sleep 1000");
    agent_take_event(&fixture.agent, (struct agent_event){.kind = AGENT_EVENT_START}, NULL);
    agent_signal_received(&fixture.agent, SIGTERM);
    event_loop_run(fixture.agent.loop);
    assert_int_equal(fixture.agent.outcome.kind, AGENT_OUTCOME_SIGNALLED);
    assert_int_equal(fixture.agent.outcome.signal, SIGTERM);
    tear_down(&fixture);
}

static void reason_of_a_failed_start_reaches_the_worker_group(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture, "");
    free(fixture.job.config.script);
    fixture.job.config.script = memory_duplicate_string("/nowhere/program");
    agent_take_event(&fixture.agent, (struct agent_event){.kind = AGENT_EVENT_START}, NULL);
    assert_int_equal(fixture.agent.machine.phase, AGENT_DONE);
    assert_int_equal(fixture.agent.outcome.kind, AGENT_OUTCOME_FAILED);
    assert_non_null(
        strstr(fixture.agent.machine.workers.failures[0].start_message, "/nowhere/program"));
    tear_down(&fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_follows_at_once_is_done_before_the_event_is),
    cmocka_unit_test(signal_becomes_the_outcome),
    cmocka_unit_test(reason_of_a_failed_start_reaches_the_worker_group),
};

TEST_MAIN(tests)
