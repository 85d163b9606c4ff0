/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent_fixture.h"

/* An agent that has not got so far as to have a job. What it says goes to a file. */
struct fixture {
    struct agent_fixture job;
    struct agent agent;
    struct log_sink *sink;
    int fd;
    char *error_file;
};

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){0};
    agent_fixture_init(&fixture->job, 1, "true");
    char *path = text_format("%s/stderr", fixture->job.directory);
    fixture->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fixture->fd >= 0);
    free(path);
    fixture->sink = log_sink_new(NULL, fixture->fd);
    fixture->error_file = text_format("%s/parent.json", fixture->job.directory);
    text_list_set_variable(
        &fixture->job.environment, "TORCHELASTIC_ERROR_FILE", fixture->error_file);
    fixture->agent.config = &fixture->job.config;
    fixture->agent.environment = &fixture->job.environment;
    fixture->agent.log = log_sink_log(fixture->sink);
}

static void tear_down(struct fixture *fixture) {
    log_sink_free(fixture->sink);
    close(fixture->fd);
    free(fixture->error_file);
    free(fixture->agent.trouble);
    agent_fixture_clear(&fixture->job);
}

static void assert_holds(int fd, const char *words) {
    char content[4096] = "";
    assert_true(pread(fd, content, sizeof content - 1, 0) > 0);
    assert_non_null(strstr(content, words));
}

static void assert_error_file_holds(const struct fixture *fixture, const char *words) {
    int fd = open(fixture->error_file, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_holds(fd, words);
    close(fd);
}

static void signal_is_said_and_gives_the_status_that_was_asked_for(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    fixture.agent.outcome =
        (struct agent_outcome){.kind = AGENT_OUTCOME_SIGNALLED, .signal = SIGINT};
    fixture.job.config.exit_code = LAUNCH_EXIT_CODE_WORKER;
    assert_int_equal(agent_end_by_signal(&fixture.agent), 128 + SIGINT);
    fixture.job.config.exit_code = LAUNCH_EXIT_CODE_TORCHRUN;
    assert_int_equal(agent_end_by_signal(&fixture.agent), 1);
    assert_holds(fixture.fd, "stopped by SIGINT\n");
    assert_error_file_holds(&fixture, "got signal: 2");
    tear_down(&fixture);
}

static void what_kept_the_agent_from_going_on_is_said_to_people_and_to_the_parent(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    assert_int_equal(agent_end_of_itself(&fixture.agent, "OSError", "no disk is left"), 1);
    assert_holds(fixture.fd, "no disk is left\n");
    assert_error_file_holds(&fixture, "OSError: no disk is left");
    tear_down(&fixture);
}

static void empty_name_of_an_error_file_is_none(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    text_list_set_variable(&fixture.job.environment, "TORCHELASTIC_ERROR_FILE", "");
    assert_int_equal(agent_end_of_itself(&fixture.agent, "OSError", "no disk is left"), 1);
    assert_int_equal(access(fixture.error_file, F_OK), -1);
    tear_down(&fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(signal_is_said_and_gives_the_status_that_was_asked_for),
    cmocka_unit_test(what_kept_the_agent_from_going_on_is_said_to_people_and_to_the_parent),
    cmocka_unit_test(empty_name_of_an_error_file_is_none),
};

UNIT_TESTS(tests)
