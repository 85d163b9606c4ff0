/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include "hang_fixture.h"
#include "host/hang_evidence_collector.h"

struct outcome {
    struct event_loop *loop;
    struct hang_evidence_collection *collection;
    size_t count;
    size_t finished;
};

static void done(void *context, const struct hang_evidence_result *results, size_t count) {
    struct outcome *outcome = context;
    outcome->count += count;
    for (size_t i = 0; i < count; i++) {
        outcome->finished += results[i].is_finished ? 1 : 0;
        assert_true(!results[i].is_finished || results[i].summary.state != 0);
    }
    hang_evidence_collection_free(outcome->collection);
    event_loop_stop(outcome->loop);
}

static void begin(struct outcome *outcome, struct hang_evidence_request *requests, size_t count,
    struct duration bound) {
    *outcome = (struct outcome){0};
    assert_int_equal(event_loop_new(&outcome->loop, NULL), FAILURE_NONE);
    struct hang_evidence_order order = {requests, count, bound, done, outcome};
    assert_int_equal(
        hang_evidence_collection_new(outcome->loop, &order, &outcome->collection, NULL),
        FAILURE_NONE);
}

static void all_are_looked_at_with_more_requests_than_threads(void **state) {
    (void)state;
    struct hang_evidence_request requests[11];
    struct outcome outcome;
    struct hang_fixture fixture;
    hang_fixture_init(&fixture, "echo; exec sleep 1000");
    for (size_t i = 0; i < 11; i++) {
        requests[i] = (struct hang_evidence_request){
            .pid = fixture.process.pid, .reason = "a test", .path = i == 0 ? fixture.path : NULL};
    }
    begin(&outcome, requests, 11, duration_from_seconds(60));
    event_loop_run(outcome.loop);
    assert_int_equal(outcome.count, 11);
    assert_int_equal(outcome.finished, 11);
    assert_true(event_loop_free(outcome.loop));
    hang_fixture_expect(&fixture, ": a test\n");
    hang_fixture_clear(&fixture);
}

/* A debugger that says nothing holds the thread up. */
static void time_is_up_although_a_thread_hangs(void **state) {
    (void)state;
    struct outcome outcome;
    struct hang_fixture fixture;
    hang_fixture_init(&fixture, "echo; exec sleep 1000");
    struct hang_evidence_request request = {
        .pid = fixture.process.pid, .is_full = true, .reason = "a test", .path = fixture.path};
    char *search = text_format("%s:/usr/bin:/bin", fixture.tree.root);
    char *gdb = temporary_tree_path(&fixture.tree, "gdb");
    FILE *file = fopen(gdb, "w");
    fprintf(file, "#!/bin/sh\nexec sleep 1000\n");
    fclose(file);
    assert_int_equal(chmod(gdb, 0755), 0);
    setenv("PATH", search, 1);
    begin(&outcome, &request, 1, duration_from_milliseconds(300));
    event_loop_run(outcome.loop);
    assert_int_equal(outcome.count, 1);
    assert_true(event_loop_free(outcome.loop));
    setenv("PATH", "/usr/bin:/bin", 1);
    free(search);
    free(gdb);
    kill(-fixture.process.pid, SIGKILL);
    int left = 2; /* the fixture's process, and the made-up debugger */
    while (left > 0) {
        left -= waitpid(-1, NULL, 0) > 0 ? 1 : 0;
    }
    fixture.process = processes_start_shell("exit 0", -1, -1);
    hang_fixture_clear(&fixture);
}

static void a_collection_may_be_dropped_at_any_time(void **state) {
    (void)state;
    struct outcome outcome;
    struct hang_fixture fixture;
    hang_fixture_init(&fixture, "echo; exec sleep 1000");
    struct hang_evidence_request request = {.pid = fixture.process.pid, .reason = "a test"};
    begin(&outcome, &request, 1, duration_from_seconds(60));
    hang_evidence_collection_free(outcome.collection);
    event_loop_run(outcome.loop);
    assert_int_equal(outcome.count, 0);
    assert_true(event_loop_free(outcome.loop));
    hang_evidence_collection_free(NULL);
    hang_fixture_clear(&fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(all_are_looked_at_with_more_requests_than_threads),
    cmocka_unit_test(time_is_up_although_a_thread_hangs),
    cmocka_unit_test(a_collection_may_be_dropped_at_any_time),
};

TEST_MAIN(tests)
