/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <signal.h>

#include "agent/agent_report.h"
#include "agent_fixture.h"
#include "workers_fixture.h"

/* A dollar doubled is one to the worker: arguments are templates. */
#define WRITE_ERROR_FILE                                                                           \
    "printf '{\"message\": {\"message\": \"ValueError: boom\", \"extraInfo\": {\"py_callstack\": " \
    "\"Traceback: boom\", \"timestamp\": \"1000\"}}}' > $TORCHELASTIC_ERROR_FILE; "

/* Runs the workers and reports on them; the caller frees the report. */
static int report_on(struct workers_fixture *fixture, const char *parent_error_file, char **out) {
    struct agent_report_settings settings = {
        .config = &fixture->agent.config,
        .preparation = &fixture->preparation,
        .workers = fixture->workers,
        .base_rank = 10,
        .parent_error_file = parent_error_file,
    };
    struct text report = {0};
    workers_fixture_run(fixture);
    int status = agent_report_failures(&settings, &fixture->group, &report);
    *out = text_take(&report);
    return status;
}

static void traceback_comes_from_the_error_file(void **state) {
    (void)state;
    struct workers_fixture fixture;
    char *report;
    workers_fixture_init(&fixture, 1, WRITE_ERROR_FILE "exit 1");
    assert_int_equal(report_on(&fixture, NULL, &report), 1);
    assert_non_null(strstr(report, "traceback : Traceback: boom"));
    assert_non_null(strstr(report, "rank      : 10 (local_rank: 0)"));
    assert_non_null(strstr(report, agent_workers_error_file(fixture.workers, 0)));
    free(report);
    workers_fixture_clear(&fixture);
}

static void earlier_error_file_is_the_root_cause(void **state) {
    (void)state;
    struct workers_fixture fixture;
    char *report;
    workers_fixture_init(&fixture, 2, "test $RANK = 10 && exit 5; " WRITE_ERROR_FILE "exit 6");
    fixture.placement.ranks.base_rank = 10;
    fixture.agent.config.exit_code = LAUNCH_EXIT_CODE_WORKER;
    assert_int_equal(report_on(&fixture, NULL, &report), 6); /* of the year 1970 */
    free(report);
    workers_fixture_clear(&fixture);
}

static void unreadable_error_file_is_noted_and_no_more(void **state) {
    (void)state;
    struct workers_fixture fixture;
    char *report;
    workers_fixture_init(&fixture, 1, "printf '{\"mess' > $TORCHELASTIC_ERROR_FILE; exit 4");
    assert_int_equal(report_on(&fixture, NULL, &report), 1);
    assert_non_null(strstr(report, "exitcode  : 4 "));
    assert_non_null(strstr(report, "unreadable error file"));
    free(report);
    workers_fixture_clear(&fixture);
}

static void parent_gets_the_error_file_with_the_exit_code(void **state) {
    (void)state;
    struct workers_fixture fixture;
    char *report;
    workers_fixture_init(&fixture, 1, WRITE_ERROR_FILE "kill -9 $$$$");
    char *parent = text_format("%s/parent.json", fixture.agent.directory);
    assert_int_equal(report_on(&fixture, parent, &report), 1);
    char content[512] = "";
    FILE *file = fopen(parent, "re");
    assert_non_null(file);
    assert_true(fread(content, 1, sizeof content - 1, file) > 0);
    fclose(file);
    assert_non_null(strstr(content, "\"errorCode\": -9"));
    assert_non_null(strstr(content, "ValueError: boom"));
    free(parent);
    free(report);
    workers_fixture_clear(&fixture);
}

static void signal_is_told_and_gives_its_status(void **state) {
    (void)state;
    struct workers_fixture fixture;
    char *report;
    workers_fixture_init(&fixture, 1, "kill -KILL $$$$");
    fixture.agent.config.exit_code = LAUNCH_EXIT_CODE_WORKER;
    assert_int_equal(report_on(&fixture, NULL, &report), 128 + SIGKILL);
    assert_non_null(strstr(report, "(SIGKILL)"));
    free(report);
    workers_fixture_clear(&fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(traceback_comes_from_the_error_file),
    cmocka_unit_test(earlier_error_file_is_the_root_cause),
    cmocka_unit_test(unreadable_error_file_is_noted_and_no_more),
    cmocka_unit_test(parent_gets_the_error_file_with_the_exit_code),
    cmocka_unit_test(signal_is_told_and_gives_its_status),
};

TEST_MAIN(tests)
