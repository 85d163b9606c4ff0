/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

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
    struct agent_settings settings = {
        .worker_count = 2,
        .shutdown_timeout = agent->config->shutdown_timeout,
        .has_peers = true, /* who are told everything, and are nobody */
    };
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
    failure_account_clear(&agent->root_cause);
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

/* Open for both, so that readers and writers need not wait for each other. */
static int open_fifo(const struct agent_fixture *job, const char *name) {
    char *path = text_format("%s/%s", job->directory, name);
    assert_int_equal(mkfifo(path, 0600), 0);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    free(path);
    return fd;
}

/* The second start of the workers ends well. */
static void new_round_starts_the_workers_anew_at_no_cost(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture, "mkdir $DIR/$RANK || exit 0; echo >$DIR/running; exec sleep 1000");
    int running = open_fifo(&fixture.job, "running");
    struct agent *agent = &fixture.agent;
    struct agent_rendezvous_observer observer = agent_rendezvous_events(agent);
    agent_take_event(agent, (struct agent_event){.kind = AGENT_EVENT_START}, NULL);
    char lines[2];
    assert_int_equal(read(running, &lines[0], 1), 1);
    assert_int_equal(read(running, &lines[1], 1), 1);
    observer.round_over(observer.context, "a node came");
    event_loop_run(agent->loop);
    assert_int_equal(agent->outcome.kind, AGENT_OUTCOME_SUCCEEDED);
    assert_int_equal(agent->placement.attempt, 0);
    close(running);
    tear_down(&fixture);
}

static void stale_answers_do_not_move_the_node(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture, "exit 0");
    struct agent_rendezvous_observer observer = agent_rendezvous_events(&fixture.agent);
    struct node_placement stale = {.group_rank = 7};
    agent_take_event(&fixture.agent, (struct agent_event){.kind = AGENT_EVENT_START}, NULL);
    observer.joined(observer.context, 0, &stale);
    assert_int_equal(fixture.agent.placement.group_rank, 0);
    event_loop_run(fixture.agent.loop);
    tear_down(&fixture);
}

static void job_that_ends_without_this_node_ends_it_well(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture, "exit 0");
    struct agent_rendezvous_observer observer = agent_rendezvous_events(&fixture.agent);
    fixture.agent.machine.phase = AGENT_JOINING;
    observer.job_over(observer.context);
    assert_int_equal(fixture.agent.machine.phase, AGENT_DONE);
    assert_int_equal(fixture.agent.outcome.kind, AGENT_OUTCOME_SUCCEEDED);
    tear_down(&fixture);
}

static void root_cause_elsewhere_is_kept_until_the_next_round(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture, "exec sleep 1000");
    struct agent *agent = &fixture.agent;
    struct agent_rendezvous_observer observer = agent_rendezvous_events(agent);
    struct failure_account account = {.host = memory_duplicate_string("node2")};
    agent_take_event(agent, (struct agent_event){.kind = AGENT_EVENT_START}, NULL);
    observer.root_cause_learnt(observer.context, &account);
    failure_account_clear(&account);
    assert_true(agent->has_root_cause);
    assert_string_equal(agent->root_cause.host, "node2");
    observer.joined(observer.context, agent->machine.ticket, &agent->placement);
    assert_false(agent->has_root_cause);
    agent_signal_received(agent, SIGTERM);
    event_loop_run(agent->loop);
    tear_down(&fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_follows_at_once_is_done_before_the_event_is),
    cmocka_unit_test(signal_becomes_the_outcome),
    cmocka_unit_test(reason_of_a_failed_start_reaches_the_worker_group),
    cmocka_unit_test(new_round_starts_the_workers_anew_at_no_cost),
    cmocka_unit_test(stale_answers_do_not_move_the_node),
    cmocka_unit_test(root_cause_elsewhere_is_kept_until_the_next_round),
    cmocka_unit_test(job_that_ends_without_this_node_ends_it_well),
};

TEST_MAIN(tests)
