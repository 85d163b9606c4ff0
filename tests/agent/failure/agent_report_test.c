/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <signal.h>

#include "agent/failure/agent_report.h"
#include "agent_fixture.h"
#include "workers_fixture.h"

/* A dollar doubled is one to the worker: arguments are templates. */
#define WRITE_ERROR_FILE                                                                           \
    "printf '{\"message\": {\"message\": \"ValueError: boom\", \"extraInfo\": {\"py_callstack\": " \
    "\"Traceback: boom\", \"timestamp\": \"1000\"}}}' > $TORCHELASTIC_ERROR_FILE; "

/* Runs the workers and reports on them; the caller frees the report. */
static int report_against(struct workers_fixture *fixture, const char *parent_error_file,
    const struct failure_account *root_cause, char **out) {
    struct agent_report_settings settings = {
        .is_shown = true,
        .root_cause = root_cause,
        .config = &fixture->agent.config,
        .sources = {&fixture->preparation, fixture->workers, &fixture->placement},
        .parent_error_file = parent_error_file,
    };
    struct text report = {0};
    fixture->placement.ranks.base_rank = 10;
    workers_fixture_run(fixture);
    int status = agent_report_failures(&settings, &fixture->group, &report);
    *out = text_take(&report);
    return status;
}

static int report_on(struct workers_fixture *fixture, const char *parent_error_file, char **out) {
    return report_against(fixture, parent_error_file, NULL, out);
}

WORKERS_TEST(traceback_comes_from_the_error_file,
    workers_fixture_init(&fixture, 1, WRITE_ERROR_FILE "exit 1")) {
    char *report;
    assert_int_equal(report_on(fixture, NULL, &report), 1);
    assert_non_null(strstr(report, "traceback : Traceback: boom"));
    assert_non_null(strstr(report, "rank      : 10 (local_rank: 0)"));
    assert_non_null(strstr(report, agent_workers_error_file(fixture->workers, 0)));
    free(report);
}

WORKERS_TEST(earlier_error_file_is_the_root_cause,
    workers_fixture_init(&fixture, 2, "test $RANK = 10 && exit 5; " WRITE_ERROR_FILE "exit 6")) {
    char *report;
    fixture->agent.config.exit_code = LAUNCH_EXIT_CODE_WORKER;
    assert_int_equal(report_on(fixture, NULL, &report), 6); /* of the year 1970 */
    free(report);
}

static char *read_text(const char *path) {
    char content[512] = "";
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    assert_true(fread(content, 1, sizeof content - 1, file) > 0);
    fclose(file);
    return memory_duplicate_string(content);
}

WORKERS_TEST(parent_gets_the_error_file_with_the_exit_code,
    workers_fixture_init(&fixture, 1, WRITE_ERROR_FILE "kill -9 $$$$")) {
    char *report;
    char *parent = text_format("%s/parent.json", fixture->agent.directory);
    assert_int_equal(report_on(fixture, parent, &report), 1);
    char *content = read_text(parent);
    assert_non_null(strstr(content, "\"errorCode\": -9"));
    assert_non_null(strstr(content, "ValueError: boom"));
    free(content);
    free(parent);
    free(report);
}

TEST_OF(agent_fixture, launcher_that_fails_itself_leaves_an_error_file,
    agent_fixture_init(&fixture, 1, ""), agent_fixture_clear) {
    char *parent = text_format("%s/parent.json", fixture->directory);
    agent_report_launcher_failure(NULL, NULL, "OSError", "nobody reads this");
    agent_report_launcher_failure(parent, NULL, "RendezvousError", "cannot join \"job7\"");
    char *content = read_text(parent);
    const char *beginning =
        "{\"message\": {\"message\": \"RendezvousError: cannot join \\\"job7\\\"\", "
        "\"extraInfo\": {\"py_callstack\": \"RendezvousError: cannot join \\\"job7\\\"\", "
        "\"timestamp\": \"";
    assert_memory_equal(content, beginning, strlen(beginning));
    assert_null(strstr(content, "errorCode"));
    free(content);
    free(parent);
}

static struct failure_account failure_elsewhere(void) {
    return (struct failure_account){
        .host = memory_duplicate_string("node2"),
        .rank = 5,
        .local_rank = 1,
        .pid = 77,
        .exit = {.value = 9},
        .message = memory_duplicate_string("Traceback: elsewhere"),
        .summary = memory_duplicate_string("KeyError: 'a'"),
    };
}

WORKERS_TEST(failure_on_another_node_is_the_root_cause,
    workers_fixture_init(&fixture, 2, "test $RANK = 10 && kill -SEGV $$$$; exit 1")) {
    char *report;
    struct failure_account elsewhere = failure_elsewhere();
    fixture->agent.config.exit_code = LAUNCH_EXIT_CODE_WORKER;
    char *parent = text_format("%s/parent.json", fixture->agent.directory);
    assert_int_equal(report_against(fixture, parent, &elsewhere, &report), 9);
    const char *root = strstr(report, "Root Cause (first observed failure):\n[0]:\n");
    assert_non_null(root);
    const char *others = strstr(root, "Failures:\n[1]:\n");
    assert_non_null(others);
    assert_true(strstr(root, "host      : node2\n") < others);
    assert_true(strstr(root, "rank      : 5 (local_rank: 1)\n") < others);
    assert_true(strstr(root, "traceback : Traceback: elsewhere\n") < others);
    assert_non_null(strstr(others, "rank      : 11 (local_rank: 1)\n"));
    assert_non_null(strstr(others, "judgement : independent"));
    assert_non_null(strstr(others, "judgement : unknown"));
    char *document = read_text(parent);
    assert_non_null(strstr(document, "KeyError: 'a'"));
    free(document);
    free(parent);
    free(report);
    failure_account_clear(&elsewhere);
}

/* Anybody may have written it, where nodes do not prove themselves. */
TEST(a_root_cause_elsewhere_does_not_make_a_success_of_a_failure) {
    struct workers_fixture fixture;
    char *report;
    struct failure_account elsewhere = failure_elsewhere();
    elsewhere.exit.value = 0;
    workers_fixture_init(&fixture, 1, "exit 0");
    fixture.agent.config.exit_code = LAUNCH_EXIT_CODE_WORKER;
    assert_int_equal(report_against(&fixture, NULL, &elsewhere, &report), 1);
    free(report);
    failure_account_clear(&elsewhere);
    workers_fixture_clear(&fixture);
}

WORKERS_TEST(
    node_without_failures_still_shows_the_root_cause, workers_fixture_init(&fixture, 1, "exit 0")) {
    char *report;
    struct failure_account elsewhere = failure_elsewhere();
    assert_int_equal(report_against(fixture, NULL, &elsewhere, &report), 1);
    assert_non_null(strstr(report, "host      : node2\n"));
    assert_non_null(strstr(report, "<NO_OTHER_FAILURES>"));
    free(report);
    failure_account_clear(&elsewhere);
}
