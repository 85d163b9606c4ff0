/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent_fixture.h"

/* Reports and records go to a file of the test's directory, so that tests can read them. */
static int run(struct agent_fixture *fixture, char **out_output) {
    char *path = text_format("%s/stderr", fixture->directory);
    int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    struct log_sink *sink = log_sink_new(NULL, fd);
    int status = agent_run(&fixture->config, &fixture->environment, sink);
    log_sink_free(sink);
    if (out_output != NULL) {
        char *output = memory_allocate(65536);
        assert_true(pread(fd, output, 65535, 0) >= 0);
        *out_output = output;
    }
    close(fd);
    free(path);
    return status;
}

static int run_command(int worker_count, const char *command) {
    struct agent_fixture fixture;
    agent_fixture_init(&fixture, worker_count, command);
    int status = run(&fixture, NULL);
    agent_fixture_clear(&fixture);
    return status;
}

TEST(job_of_succeeding_workers_succeeds) {
    assert_int_equal(run_command(2, "exit 0"), 0);
}

TEST(failing_worker_fails_the_job_with_1) {
    assert_int_equal(run_command(2, "exit $((RANK * 7))"), 1);
}

TEST(every_worker_learns_its_place) {
    struct agent_fixture fixture;
    agent_fixture_init(&fixture, 3, "touch $DIR/$RANK-$LOCAL_RANK-$WORLD_SIZE-$GROUP_RANK");
    assert_int_equal(run(&fixture, NULL), 0);
    assert_true(agent_fixture_has_file(&fixture, "0-0-3-0"));
    assert_true(agent_fixture_has_file(&fixture, "1-1-3-0"));
    assert_true(agent_fixture_has_file(&fixture, "2-2-3-0"));
    agent_fixture_clear(&fixture);
}

TEST(failed_group_is_restarted_while_restarts_are_left) {
    struct agent_fixture fixture;
    agent_fixture_init(&fixture, 2,
        "touch $DIR/$RANK-$TORCHELASTIC_RESTART_COUNT; "
        "test $RANK = 0 || test $TORCHELASTIC_RESTART_COUNT = 2");
    fixture.config.max_restarts = 2;
    assert_int_equal(run(&fixture, NULL), 0);
    assert_true(agent_fixture_has_file(&fixture, "1-0"));
    assert_true(agent_fixture_has_file(&fixture, "1-1"));
    assert_true(agent_fixture_has_file(&fixture, "1-2"));
    agent_fixture_clear(&fixture);
}

TEST(exit_code_of_the_root_cause_can_be_asked_for) {
    struct agent_fixture fixture;
    agent_fixture_init(&fixture, 2, "test $RANK = 0 && exit 7; exec sleep 100");
    fixture.config.exit_code = LAUNCH_EXIT_CODE_WORKER;
    assert_int_equal(run(&fixture, NULL), 7);
    agent_fixture_clear(&fixture);
    agent_fixture_init(&fixture, 1, "kill -SEGV $$$$");
    fixture.config.exit_code = LAUNCH_EXIT_CODE_WORKER;
    assert_int_equal(run(&fixture, NULL), 128 + SIGSEGV);
    agent_fixture_clear(&fixture);
}

TEST(report_names_the_root_cause_first) {
    struct agent_fixture fixture;
    char *output;
    agent_fixture_init(&fixture, 2, "test $RANK = 1 && exit 7; exec sleep 100");
    assert_int_equal(run(&fixture, &output), 1);
    const char *root = strstr(output, "Root Cause (first observed failure):");
    const char *others = strstr(output, "Failures:");
    assert_non_null(root);
    assert_non_null(others);
    assert_true(root < others);
    assert_non_null(strstr(root, "exitcode  : 7 "));
    assert_non_null(strstr(others, "(SIGTERM)"));
    free(output);
    agent_fixture_clear(&fixture);
}

TEST(program_that_cannot_be_executed_is_told_as_such) {
    struct agent_fixture fixture;
    char *output;
    agent_fixture_init(&fixture, 2, "");
    free(fixture.config.script);
    fixture.config.script = memory_duplicate_string("./no-such-program");
    fixture.config.max_restarts = 3;
    assert_int_equal(run(&fixture, &output), 1);
    assert_non_null(strstr(output, "./no-such-program"));
    assert_non_null(strstr(output, "No such file or directory"));
    free(output);
    agent_fixture_clear(&fixture);
}

TEST(grandchildren_do_not_outlive_the_job) {
    struct agent_fixture fixture;
    agent_fixture_init(&fixture, 1,
        "setsid sh -c 'echo $$$$ > $DIR/pid; exec sleep 1000' & "
        "while ! test -s $DIR/pid; do :; done; exit 0");
    assert_int_equal(run(&fixture, NULL), 0);
    char *path = text_format("%s/pid", fixture.directory);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    int pid = 0;
    assert_int_equal(fscanf(file, "%d", &pid), 1);
    fclose(file);
    free(path);
    assert_int_equal(kill(pid, 0), -1);
    agent_fixture_clear(&fixture);
}
