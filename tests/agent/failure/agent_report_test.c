/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "agent/failure/agent_report.h"
#include "agent_fixture.h"
#include "workers_fixture.h"

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
