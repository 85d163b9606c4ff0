/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <signal.h>

#include "agent/failure/agent_evidence.h"
#include "agent_fixture.h"
#include "host/loop/files.h"
#include "host/remembered_log.h"
#include "workers_fixture.h"

struct fixture {
    struct workers_fixture workers;
    struct remembered_log log;
    struct agent_evidence *evidence;
    int done_count;
};

static void start(struct fixture *fixture, enum launch_evidence kind) {
    *fixture = (struct fixture){0};
    workers_fixture_init(&fixture->workers, 2, "exec sleep 1000");
    remembered_log_init(&fixture->log);
    struct launch_config *config = &fixture->workers.agent.config;
    config->evidence = kind;
    struct agent_evidence_settings settings = {
        config, fixture->workers.workers, &fixture->log.log, NULL};
    fixture->evidence = agent_evidence_new(fixture->workers.loop, &settings);
    workers_fixture_start(&fixture->workers);
}

static void done(void *context) {
    struct fixture *fixture = context;
    fixture->done_count++;
    agent_workers_signal(fixture->workers.workers, SIGKILL);
}

static void gather(struct fixture *fixture) {
    struct agent_evidence_subject subjects[2];
    for (int i = 0; i < 2; i++) {
        subjects[i] =
            (struct agent_evidence_subject){agent_workers_pid(fixture->workers.workers, i), i};
    }
    struct agent_evidence_order order = {
        subjects, 2, "the test wants it", duration_from_seconds(60), done, fixture, NULL};
    agent_evidence_gather(fixture->evidence, &order);
}

static void finish(struct fixture *fixture) {
    event_loop_run(fixture->workers.loop);
    agent_evidence_free(fixture->evidence);
    text_clear(&fixture->log.text);
    workers_fixture_clear(&fixture->workers);
}

TEST(each_worker_gets_a_report_and_a_line) {
    struct fixture fixture;
    struct bytes bytes = {0};
    start(&fixture, LAUNCH_EVIDENCE_BASIC);
    gather(&fixture);
    assert_int_equal(fixture.done_count, 0);
    char *path = agent_workers_log_file(fixture.workers.workers, 1, LOG_TREE_HANG_EVIDENCE);
    char *see = text_format("; see %s", path);
    event_loop_run(fixture.workers.loop);
    assert_int_equal(fixture.done_count, 1);
    assert_true(remembered_log_has(&fixture.log, "(local_rank 0) is "));
    assert_true(remembered_log_has(&fixture.log, "(local_rank 1) is "));
    assert_true(remembered_log_has(&fixture.log, see));
    assert_non_null(strstr(agent_workers_evidence(fixture.workers.workers, 1), "before that it"));
    assert_non_null(strstr(agent_workers_evidence(fixture.workers.workers, 1), see));
    assert_int_equal(whole_file_read(path, false, 1 << 20, &bytes, NULL), FAILURE_NONE);
    assert_true(bytes.length > 100);
    bytes_clear(&bytes);
    free(see);
    free(path);
    agent_evidence_free(fixture.evidence);
    text_clear(&fixture.log.text);
    workers_fixture_clear(&fixture.workers);
}

TEST(without_evidence_it_is_done_at_once) {
    struct fixture fixture;
    start(&fixture, LAUNCH_EVIDENCE_OFF);
    assert_null(fixture.evidence);
    gather(&fixture);
    assert_int_equal(fixture.done_count, 1);
    agent_evidence_drop(fixture.evidence);
    finish(&fixture);
    assert_int_equal(fixture.done_count, 1);
}

TEST_OF(fixture, with_nobody_to_look_at_it_is_done_at_once, start(&fixture, LAUNCH_EVIDENCE_BASIC),
    finish) {
    struct agent_evidence_order order = {
        NULL, 0, "the test wants it", duration_from_seconds(60), done, fixture, NULL};
    agent_evidence_gather(fixture->evidence, &order);
    assert_int_equal(fixture->done_count, 1);
}

TEST(what_is_dropped_is_never_done) {
    struct fixture fixture;
    start(&fixture, LAUNCH_EVIDENCE_BASIC);
    gather(&fixture);
    agent_evidence_drop(fixture.evidence);
    agent_workers_signal(fixture.workers.workers, SIGKILL);
    finish(&fixture);
    assert_int_equal(fixture.done_count, 0);
}
