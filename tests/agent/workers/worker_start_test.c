/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <sys/wait.h>

#include "agent/workers/agent_workers.h"
#include "agent_fixture.h"

static void the_environment_has_the_files_of_the_worker(void **state) {
    (void)state;
    struct agent_fixture fixture;
    struct text_list environment = {0};
    agent_fixture_init(&fixture, 1, "exit 0");
    char mark[] = "abc:";
    const struct agent_preparation preparation = {.worker_mark = mark};
    const struct agent_workers_settings settings = {.config = &fixture.config,
        .preparation = &preparation,
        .environment = &fixture.environment};
    const struct node_placement placement = {.run_id = "run", .master_address = "localhost"};
    assert_int_equal(worker_start_environment(
                         &settings, &placement, 0, "error.json", "fifo", &environment, NULL),
        FAILURE_NONE);
    assert_string_equal(text_list_variable(&environment, "TORCHELASTIC_ERROR_FILE"), "error.json");
    assert_string_equal(text_list_variable(&environment, "TORCHELASTIC_TIMER_FILE"), "fifo");
    assert_null(text_list_variable(&environment, WORKER_MARK_VARIABLE));
    assert_string_equal(text_list_variable(&environment, "DIR"), fixture.directory);
    text_list_clear(&environment);
    assert_int_equal(
        worker_start_environment(&settings, &placement, 3, NULL, "fifo", &environment, NULL),
        FAILURE_NONE);
    assert_string_equal(text_list_variable(&environment, WORKER_MARK_VARIABLE), "abc:3");
    text_list_clear(&environment);
    agent_fixture_clear(&fixture);
}

static void a_rank_without_a_device_is_refused_in_words(void **state) {
    (void)state;
    struct agent_fixture fixture;
    struct text_list environment = {0};
    struct failure failure;
    agent_fixture_init(&fixture, 2, "exit 0");
    fixture.config.is_virtual_local_rank = true;
    text_list_add(&fixture.environment, "CUDA_VISIBLE_DEVICES=4");
    const struct agent_workers_settings settings = {
        .config = &fixture.config, .environment = &fixture.environment};
    const struct node_placement placement = {.run_id = "run", .master_address = "localhost"};
    assert_int_equal(
        worker_start_environment(&settings, &placement, 1, NULL, NULL, &environment, &failure),
        FAILURE_INVALID);
    assert_non_null(
        strstr(failure.message, "CUDA_VISIBLE_DEVICES=4 names no device for local rank 1"));
    agent_fixture_clear(&fixture);
}

static void the_process_runs_the_workers_program(void **state) {
    (void)state;
    struct agent_fixture fixture;
    struct process process;
    struct agent_preparation preparation = {.worker_count = 1};
    const int descriptors[4] = {-1, -1, -1, -1};
    int status;
    agent_fixture_init(&fixture, 1, "exit 6");
    const struct agent_workers_settings settings = {.config = &fixture.config,
        .preparation = &preparation,
        .environment = &fixture.environment,
        .descriptor_limit = -1};
    assert_int_equal(
        worker_start_process(&settings, 0, &fixture.environment, descriptors, &process, NULL),
        FAILURE_NONE);
    assert_int_equal(waitpid(process.pid, &status, 0), process.pid);
    assert_int_equal(WEXITSTATUS(status), 6);
    if (process.pidfd != -1) {
        close(process.pidfd);
    }
    agent_fixture_clear(&fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_environment_has_the_files_of_the_worker),
    cmocka_unit_test(a_rank_without_a_device_is_refused_in_words),
    cmocka_unit_test(the_process_runs_the_workers_program),
};

UNIT_TESTS(tests)
