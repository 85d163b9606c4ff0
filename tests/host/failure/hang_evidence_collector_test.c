/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "hang_fixture.h"
#include "host/failure/hang_evidence_collector.h"
#include "host/loop/clock.h"

struct outcome {
    struct event_loop *loop;
    struct hang_evidence_collector *collector;
    struct hang_fixture fixture;
    size_t wanted;
    size_t count;
    size_t complete;
    size_t known;
};

static void looked_at(void *context, const struct hang_evidence_result *result) {
    struct outcome *outcome = context;
    outcome->count++;
    outcome->complete += result->is_complete ? 1 : 0;
    outcome->known += result->summary.state != '\0' ? 1 : 0;
    if (outcome->count == outcome->wanted) {
        event_loop_stop(outcome->loop);
    }
}

static void begin(struct outcome *outcome) {
    *outcome = (struct outcome){0};
    hang_fixture_init(&outcome->fixture, "echo; exec sleep 1000");
    assert_int_equal(event_loop_new(&outcome->loop, NULL), FAILURE_NONE);
    assert_int_equal(
        hang_evidence_collector_new(outcome->loop, &outcome->collector, NULL), FAILURE_NONE);
}

static void look(struct outcome *outcome, int64_t milliseconds, bool is_full, const char *path) {
    struct duration bound = duration_from_milliseconds(milliseconds);
    struct hang_evidence_request request = {
        .pid = outcome->fixture.process.pid,
        .is_full = is_full,
        .reason = "a test",
        .path = path,
        .end = instant_after(clock_now(), bound),
    };
    const struct hang_evidence_answer answer = {looked_at, outcome};
    outcome->wanted++;
    assert_int_equal(
        hang_evidence_collector_look(outcome->collector, &request, &answer, NULL), FAILURE_NONE);
}

static void end(struct outcome *outcome) {
    hang_evidence_collector_free(outcome->collector);
    assert_true(event_loop_free(outcome->loop));
    hang_fixture_clear(&outcome->fixture);
}

TEST(all_are_looked_at_though_there_are_more_than_threads) {
    enum { COUNT = 5 * HANG_EVIDENCE_MAXIMUM_COLLECTORS };
    struct outcome outcome;
    begin(&outcome);
    for (int i = 0; i < COUNT; i++) {
        look(&outcome, 60000, false, i == 0 ? outcome.fixture.path : NULL);
    }
    event_loop_run(outcome.loop);
    assert_int_equal(outcome.count, COUNT);
    assert_int_equal(outcome.complete, COUNT);
    assert_int_equal(outcome.known, COUNT);
    hang_fixture_expect(&outcome.fixture, ": a test\n");
    end(&outcome);
}

/* The debugger prints nothing and does not end, so the thread is busy until the time is up. */
TEST(when_time_is_up_what_is_known_is_told) {
    struct outcome outcome;
    begin(&outcome);
    char *search = text_format("%s:/usr/bin:/bin", outcome.fixture.tree.root);
    char *gdb = temporary_tree_path(&outcome.fixture.tree, "gdb");
    FILE *file = fopen(gdb, "w");
    fprintf(file, "#!/bin/sh\nexec sleep 1000\n");
    fclose(file);
    assert_int_equal(chmod(gdb, 0755), 0);
    setenv("PATH", search, 1);
    look(&outcome, 1000, true, outcome.fixture.path);
    event_loop_run(outcome.loop);
    assert_int_equal(outcome.count, 1);
    assert_int_equal(outcome.complete, 0);
    assert_int_equal(outcome.known, 1);
    setenv("PATH", "/usr/bin:/bin", 1);
    free(search);
    free(gdb);
    kill(-outcome.fixture.process.pid, SIGKILL);
    int left = 2; /* the fixture's process and the test's debugger */
    while (left > 0) {
        left -= waitpid(-1, NULL, 0) > 0 ? 1 : 0;
    }
    outcome.fixture.process = processes_start_shell("exit 0", -1, -1);
    end(&outcome);
}

TEST(what_is_dropped_is_not_answered) {
    struct outcome outcome;
    begin(&outcome);
    for (int i = 0; i < 100; i++) {
        look(&outcome, 60000, false, NULL);
    }
    hang_evidence_collector_drop(outcome.collector);
    while (event_loop_run_ready(outcome.loop) && outcome.count > 0) {
    }
    assert_int_equal(outcome.count, 0);
    outcome.wanted = 0;
    look(&outcome, 60000, false, NULL);
    event_loop_run(outcome.loop);
    assert_int_equal(outcome.complete, 1);
    end(&outcome);
    hang_evidence_collector_free(NULL);
}

TEST(looks_may_be_under_way_when_the_collector_is_freed) {
    struct outcome outcome;
    begin(&outcome);
    for (int i = 0; i < 100; i++) {
        look(&outcome, 60000, false, NULL);
    }
    end(&outcome);
    assert_int_equal(outcome.count, 0);
}
