/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <signal.h>

#include "agent/failure/agent_report.h"
#include "agent_fixture.h"
#include "workers_fixture.h"

/* Runs one worker and collects its failure. */
static struct agent_finding find(struct workers_fixture *fixture, const char *command) {
    workers_fixture_init(fixture, 1, command);
    fixture->placement.node = "here_1_2";
    fixture->placement.group_rank = 3;
    fixture->placement.ranks.base_rank = 10;
    fixture->placement.ranks.role_base_rank = 7;
    struct agent_findings_sources sources = {
        &fixture->preparation, fixture->workers, &fixture->placement};
    workers_fixture_run(fixture);
    struct agent_finding finding;
    agent_finding_collect(&sources, &fixture->group, 0, &finding);
    return finding;
}

static void tear_down(struct workers_fixture *fixture, struct agent_finding *finding) {
    agent_finding_clear(finding);
    workers_fixture_clear(fixture);
}

TEST(account_has_the_place_and_the_end_of_the_worker) {
    struct workers_fixture fixture;
    struct agent_finding finding = find(&fixture, "kill -KILL $$$$");
    const struct failure_account *account = &finding.account;
    assert_string_equal(account->host, fixture.preparation.node_name);
    assert_string_equal(account->node, "here_1_2");
    assert_int_equal(account->group_rank, 3);
    assert_int_equal(account->rank, 10);
    assert_int_equal(account->role_rank, 7);
    assert_true(account->exit.is_signal);
    assert_int_equal(account->exit.value, SIGKILL);
    assert_true(account->pid > 0);
    assert_true(account->seconds > 0);
    assert_false(finding.has_error);
    assert_null(account->message);
    tear_down(&fixture, &finding);
}

TEST(account_has_what_the_error_file_says) {
    struct workers_fixture fixture;
    struct agent_finding finding =
        find(&fixture, "printf '{\"message\": {\"message\": \"ValueError: boom\", \"extraInfo\": "
                       "{\"py_callstack\": \"Traceback: boom\", \"timestamp\": \"1000\"}}}' "
                       "> $TORCHELASTIC_ERROR_FILE; exit 1");
    assert_true(finding.has_error);
    assert_string_equal(finding.account.message, "Traceback: boom");
    assert_string_equal(finding.account.summary, "ValueError: boom");
    assert_true(finding.account.is_message_object);
    assert_true(finding.account.seconds == 1000);
    assert_true(fixture.group.failures[0].has_error_time);
    assert_non_null(finding.account.error_file);
    assert_true(finding.error_file.length > 0);
    tear_down(&fixture, &finding);
}

TEST(odd_error_file_is_noted) {
    struct workers_fixture fixture;
    struct agent_finding finding =
        find(&fixture, "echo nonsense > $TORCHELASTIC_ERROR_FILE; exit 1");
    assert_false(finding.has_error);
    assert_null(finding.account.error_file);
    assert_non_null(strstr(finding.account.note, "unreadable error file"));
    tear_down(&fixture, &finding);
}
