/* SPDX-License-Identifier: BSD-3-Clause */
/* The agent in the program's own process, which here is a child of the test. */
#include "unit.h"

#include <signal.h>
#include <sys/wait.h>

#include "library/agent_fixture.h"

/* Runs the agent in a child, which ends with 0 if `is_good` thinks so. */
static void run_in_a_child(
    struct fixture *fixture, bool (*is_good)(const struct fixture *fixture, int status)) {
    int end;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int status = -1;
        bool is_ok = muster_agent_run(&fixture->settings, &status, NULL) == MUSTER_OK &&
                     fixture->ended == 1 && is_good(fixture, status);
        _exit(is_ok ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &end, 0), child);
    assert_int_equal(end, 0);
}

static bool has_succeeded(const struct fixture *fixture, int status) {
    return status == 0 && strstr(text_string(&fixture->story), "AGENT:SUCCEEDED") != NULL &&
           strstr(text_string(&fixture->metrics), "SimpleElasticAgent.run.success") != NULL;
}

FIXTURE_TEST_AFTER(job_is_run_and_told_of, set_up(&fixture, 2, "exit 0")) {
    run_in_a_child(fixture, has_succeeded);
}

static bool has_failed(const struct fixture *fixture, int status) {
    return status == 1 && strstr(text_string(&fixture->story), "WORKER:FAILED") != NULL;
}

FIXTURE_TEST_AFTER(failure_is_the_exit_status, set_up(&fixture, 1, "exit 5")) {
    run_in_a_child(fixture, has_failed);
}

static bool has_exit_code_5(const struct fixture *fixture, int status) {
    (void)fixture;
    return status == 5;
}

FIXTURE_TEST_AFTER(further_options_hold, set_up(&fixture, 1, "exit 5")) {
    fixture->settings.options = (const char *const[]){"--standalone", "--exit-code=worker", NULL};
    run_in_a_child(fixture, has_exit_code_5);
}

static int asked;

static enum muster_error count_start(
    void *context, const struct muster_worker_group *group, struct muster_failure *failure) {
    (void)context;
    (void)failure;
    asked += (int)group->worker_count;
    return MUSTER_OK;
}

static bool has_asked_here(const struct fixture *fixture, int status) {
    (void)fixture;
    return status == 0 && asked == 2;
}

FIXTURE_TEST_AFTER(
    hooks_are_called_in_the_process_that_runs_the_agent, set_up(&fixture, 2, "exit 0")) {
    fixture->settings.start_workers = count_start;
    run_in_a_child(fixture, has_asked_here);
}

static void signal_this(void *context, const struct muster_agent_event *event) {
    (void)context;
    if (event->kind == MUSTER_AGENT_EVENT_WORKER && strcmp(event->state, "START") == 0) {
        kill(getpid(), SIGTERM);
    }
}

static bool was_stopped(const struct fixture *fixture, int status) {
    (void)fixture;
    return status == 1;
}

/* The first one leaves the token where the second one looks for it. */
static bool has_the_token_again(const struct fixture *fixture, int status) {
    int again = -1;
    return status == 0 && text_equals(getenv("MUSTER_JOB_TOKEN"), "of a program that runs two") &&
           muster_agent_run(&fixture->settings, &again, NULL) == MUSTER_OK && again == 0;
}

TEST(two_jobs_of_one_process_have_one_token) {
    struct fixture fixture;
    setenv("MUSTER_JOB_TOKEN", "of a program that runs two", 1);
    set_up(&fixture, 1, "test -z \"$MUSTER_JOB_TOKEN\"");
    fixture.settings.env = NULL;
    fixture.settings.options = (const char *const[]){"--standalone", "--auth=token", NULL};
    run_in_a_child(&fixture, has_the_token_again);
    unsetenv("MUSTER_JOB_TOKEN");
    tear_down(&fixture);
}

FIXTURE_TEST_AFTER(signals_are_the_agents, set_up(&fixture, 1, "sleep 1000")) {
    fixture->settings.event = signal_this;
    run_in_a_child(fixture, was_stopped);
}

/* A pipe that the program has opened, which its function inherits. */
static int pipe_ends[2];

static int write_a_byte(void *context, struct muster_return_value *out_value) {
    (void)out_value;
    (void)context;
    return write(pipe_ends[1], getenv("RANK"), 1) == 1 ? 0 : 1;
}

FIXTURE_TEST_AFTER(
    function_inherits_what_the_program_has_open, set_up_function(&fixture, 2, write_a_byte)) {
    char bytes[4];
    assert_int_equal(pipe(pipe_ends), 0);
    run_in_a_child(fixture, has_succeeded);
    close(pipe_ends[1]);
    assert_int_equal(read(pipe_ends[0], bytes, sizeof bytes), 2);
    assert_int_equal(bytes[0] + bytes[1], '0' + '1');
    close(pipe_ends[0]);
}
