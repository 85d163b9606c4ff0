/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <sys/stat.h>

#include "agent/workers/attempt_logs.h"
#include "agent_fixture.h"
#include "core/workers/log_plan.h"

struct fixture {
    struct agent_fixture job;
    struct agent_preparation preparation;
    struct event_loop *loop;
    struct attempt_logs_settings settings;
    struct attempt_files *files;
    struct attempt_logs logs;
    struct failure failure;
};

static void set_up(struct fixture *fixture, int redirects, int tee) {
    *fixture = (struct fixture){0};
    agent_fixture_init(&fixture->job, 2, "exit 0");
    fixture->job.config.redirects.for_all = redirects;
    fixture->job.config.tee.for_all = tee;
    assert_int_equal(agent_prepare(&fixture->job.config, &fixture->job.environment, NULL,
                         &fixture->preparation, NULL),
        FAILURE_NONE);
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    fixture->settings.config = &fixture->job.config;
    fixture->settings.preparation = &fixture->preparation;
    struct log_thread_settings thread = {.loop = fixture->loop,
        .stdout_fd = STDOUT_FILENO,
        .stderr_fd = STDERR_FILENO,
        .patience = duration_from_seconds(60)};
    assert_int_equal(log_thread_new(&thread, &fixture->settings.log_thread, NULL), FAILURE_NONE);
}

/* Nothing can be made below the job's log directory any more. */
static void spoil_log_directory(struct fixture *fixture) {
    char *command = text_format("rm -rf '%s'", fixture->preparation.logs.run_path);
    assert_int_equal(system(command), 0);
    free(command);
    fclose(fopen(fixture->preparation.logs.run_path, "we"));
}

static enum failure_code begin(struct fixture *fixture, int attempt) {
    fixture->settings.attempt.restart_count = attempt;
    fixture->settings.is_first = attempt == 0;
    fixture->files = attempt_logs_plan(&fixture->settings);
    attempt_files_make(fixture->files);
    return attempt_logs_init(
        &fixture->logs, &fixture->settings, fixture->files, NULL, &fixture->failure);
}

static int open_stream(struct fixture *fixture, enum attempt_stream stream) {
    int fd = -7;
    assert_int_equal(attempt_logs_open_stream(&fixture->logs, 0, stream, &fd, NULL), FAILURE_NONE);
    return fd;
}

static void tear_down(struct fixture *fixture) {
    attempt_logs_clear(&fixture->logs);
    if (fixture->files != NULL) {
        attempt_files_free(fixture->files);
    }
    log_thread_free(fixture->settings.log_thread);
    assert_true(event_loop_free(fixture->loop));
    agent_preparation_clear(&fixture->preparation);
    agent_fixture_clear(&fixture->job);
}

FIXTURE_TEST_AFTER(redirected_stream_is_a_pipe_and_the_other_inherited,
    set_up(&fixture, LAUNCH_STREAM_STDOUT, 0)) {
    assert_int_equal(begin(fixture, 0), FAILURE_NONE);
    int fd = open_stream(fixture, ATTEMPT_STDOUT);
    struct stat status;
    assert_int_equal(fstat(fd, &status), 0);
    assert_true(S_ISFIFO(status.st_mode));
    attempt_logs_close_stream(&fixture->logs, fd);
    assert_int_equal(open_stream(fixture, ATTEMPT_STDERR), -1);
}

FIXTURE_TEST_AFTER(
    first_attempt_does_not_start_without_its_logs, set_up(&fixture, LAUNCH_STREAM_STDOUT, 0)) {
    spoil_log_directory(fixture);
    assert_int_not_equal(begin(fixture, 0), FAILURE_NONE);
    assert_non_null(strstr(fixture->failure.message, fixture->preparation.logs.run_path));
}

FIXTURE_TEST_AFTER(
    restart_goes_on_without_logs, set_up(&fixture, LAUNCH_STREAM_STDOUT, LAUNCH_STREAM_STDERR)) {
    spoil_log_directory(fixture);
    assert_int_equal(begin(fixture, 1), FAILURE_NONE);
    assert_null(attempt_logs_error_file(&fixture->logs, 0));
    int fd = open_stream(fixture, ATTEMPT_STDOUT);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "x", 1), 1); /* goes nowhere, and does no harm */
    attempt_logs_close_stream(&fixture->logs, fd);
    assert_int_equal(open_stream(fixture, ATTEMPT_STDERR), -1); /* what was shown still is */
}

FIXTURE_TEST_AFTER(without_a_disk_that_answers_workers_go_on_without_files,
    set_up(&fixture, LAUNCH_STREAM_STDOUT, 0)) {
    assert_int_equal(attempt_logs_init(&fixture->logs, &fixture->settings, NULL,
                         "the disk does not answer", &fixture->failure),
        FAILURE_NONE);
    assert_null(attempt_logs_error_file(&fixture->logs, 0));
    int fd = open_stream(fixture, ATTEMPT_STDOUT);
    assert_int_equal(write(fd, "x", 1), 1); /* goes nowhere, and does no harm */
    attempt_logs_close_stream(&fixture->logs, fd);
    assert_int_equal(open_stream(fixture, ATTEMPT_STDERR), -1);
}

FIXTURE_TEST_AFTER(streams_that_nobody_took_are_closed,
    set_up(&fixture, LAUNCH_STREAM_STDOUT | LAUNCH_STREAM_STDERR, 0)) {
    text_list_add(&fixture->job.config.duplicate_stdout_filters, "loss");
    assert_int_equal(begin(fixture, 0), FAILURE_NONE);
    assert_non_null(fixture->logs.filters[ATTEMPT_STDOUT]);
    assert_null(fixture->logs.filters[ATTEMPT_STDERR]);
    int fd = open_stream(fixture, ATTEMPT_STDOUT);
    attempt_logs_close_stream(&fixture->logs, fd);
}

FIXTURE_TEST_AFTER(thread_is_needed_only_for_redirected_streams, set_up(&fixture, 0, 0)) {
    assert_false(log_plan_redirects(&fixture->job.config, fixture->preparation.worker_count));
    fixture->job.config.tee.for_all = LAUNCH_STREAM_STDERR;
    assert_true(log_plan_redirects(&fixture->job.config, fixture->preparation.worker_count));
    fixture->logs.null_fd = -1;
}
