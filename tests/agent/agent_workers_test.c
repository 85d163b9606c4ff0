/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <signal.h>

#include "agent/agent_workers.h"
#include "agent_fixture.h"

struct fixture {
    struct agent_fixture agent;
    struct agent_preparation preparation;
    struct event_loop *loop;
    struct agent_workers *workers;
    struct node_placement placement;
    char story[128]; /* one letter per report: s started, f failed to start, 0-9 exited, g gone */
    struct process_exit last_exit;
    char *message;
};

static void tell(struct fixture *fixture, char letter) {
    fixture->story[strlen(fixture->story)] = letter;
}

static void started(void *context) {
    tell(context, 's');
}

static void start_failed(void *context, int local_rank, const char *message) {
    struct fixture *fixture = context;
    tell(fixture, 'f');
    tell(fixture, (char)('0' + local_rank));
    free(fixture->message);
    fixture->message = memory_duplicate_string(message);
}

static void exited(void *context, int local_rank, struct process_exit how) {
    struct fixture *fixture = context;
    tell(fixture, (char)('0' + local_rank));
    fixture->last_exit = how;
}

static void all_gone(void *context) {
    struct fixture *fixture = context;
    tell(fixture, 'g');
    event_loop_stop(fixture->loop);
}

static void set_up(struct fixture *fixture, int worker_count, const char *command) {
    *fixture = (struct fixture){0};
    agent_fixture_init(&fixture->agent, worker_count, command);
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    assert_int_equal(agent_prepare(&fixture->agent.config, &fixture->agent.environment,
                         &fixture->preparation, NULL),
        FAILURE_NONE);
    struct agent_workers_settings settings = {
        .config = &fixture->agent.config,
        .preparation = &fixture->preparation,
        .environment = &fixture->agent.environment,
        .observer = {started, start_failed, exited, all_gone, fixture},
    };
    assert_int_equal(
        agent_workers_new(fixture->loop, &settings, &fixture->workers, NULL), FAILURE_NONE);
    fixture->placement = (struct node_placement){
        .run_id = "run",
        .master_address = "localhost",
        .master_port = 1,
        .group_world_size = 1,
        .local_world_size = worker_count,
        .ranks = {0, worker_count, 0, worker_count},
    };
}

static void tear_down(struct fixture *fixture) {
    agent_workers_free(fixture->workers);
    assert_true(event_loop_free(fixture->loop));
    agent_preparation_clear(&fixture->preparation);
    agent_fixture_clear(&fixture->agent);
    free(fixture->message);
}

static void gone_is_told_after_the_last_exit(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture, 1, "exit 3");
    agent_workers_start(fixture.workers, &fixture.placement);
    event_loop_run(fixture.loop);
    assert_string_equal(fixture.story, "s0g");
    assert_int_equal(fixture.last_exit.value, 3);
    tear_down(&fixture);
}

static void signal_reaches_every_worker(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture, 2, "exec sleep 1000");
    agent_workers_start(fixture.workers, &fixture.placement);
    agent_workers_signal(fixture.workers, SIGTERM);
    event_loop_run(fixture.loop);
    assert_int_equal(strlen(fixture.story), 4);
    assert_true(fixture.last_exit.is_signal);
    assert_int_equal(fixture.last_exit.value, SIGTERM);
    tear_down(&fixture);
}

static void start_that_fails_at_once_is_over_at_once(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture, 2, "");
    free(fixture.agent.config.script);
    fixture.agent.config.script = memory_duplicate_string("/nowhere/program");
    agent_workers_start(fixture.workers, &fixture.placement);
    assert_string_equal(fixture.story, "f0g");
    assert_non_null(strstr(fixture.message, "/nowhere/program"));
    tear_down(&fixture);
}

static void error_file_is_below_the_log_directory(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture, 1, "printf '%s' \"$TORCHELASTIC_ERROR_FILE\" >$DIR/told; exit 0");
    agent_workers_start(fixture.workers, &fixture.placement);
    event_loop_run(fixture.loop);
    const char *path = agent_workers_error_file(fixture.workers, 0);
    assert_true(text_starts_with(path, fixture.agent.config.log_dir));
    assert_non_null(strstr(path, "/attempt_0/0/error.json"));
    tear_down(&fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(gone_is_told_after_the_last_exit),
    cmocka_unit_test(signal_reaches_every_worker),
    cmocka_unit_test(start_that_fails_at_once_is_over_at_once),
    cmocka_unit_test(error_file_is_below_the_log_directory),
};

TEST_MAIN(tests)
