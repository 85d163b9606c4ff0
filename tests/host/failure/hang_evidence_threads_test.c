/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <pthread.h>
#include <semaphore.h>

#include "hang_fixture.h"
#include "host/failure/hang_evidence.h"
#include "host/loop/clock.h"

/* The process waits a moment after it has printed the line that announces it, so the look is
 * repeated. */
static void look_until(
    struct hang_fixture *fixture, struct hang_summary *summary, char state, const char *call) {
    for (;;) {
        hang_summary_clear(summary);
        hang_evidence_write_threads(&fixture->report, fixture->process.pid, summary);
        if (summary->state == state &&
            (call == NULL || (summary->call != NULL && text_equals(summary->call, call)))) {
            return;
        }
    }
}

static void a_reader_of_a_pipe_is_seen_in_its_call(void **state) {
    (void)state;
    struct hang_fixture fixture;
    struct hang_summary summary = {0};
    hang_fixture_init(&fixture, "mkfifo $$.fifo; exec 3<>$$.fifo; rm $$.fifo; echo; read line <&3");
    look_until(&fixture, &summary, 'S', "read");
    hang_summary_clear(&summary);
    hang_evidence_write_threads(&fixture.report, fixture.process.pid, &summary);
    assert_int_equal(summary.thread_count, 1);
    hang_fixture_expect(&fixture, "sleeping in read");
    hang_fixture_expect(&fixture, "State:\tS (sleeping)");
    hang_summary_clear(&summary);
    hang_fixture_clear(&fixture);
}

static void a_stopped_process_is_seen_as_that(void **state) {
    (void)state;
    struct hang_fixture fixture;
    struct hang_summary summary = {0};
    hang_fixture_init(&fixture, "echo; kill -STOP $$");
    look_until(&fixture, &summary, 'T', NULL);
    hang_fixture_expect(&fixture, "stopped");
    hang_summary_clear(&summary);
    hang_fixture_clear(&fixture);
}

static void *wait_for_ever(void *context) {
    sem_wait(context);
    return NULL;
}

/* Threads are found by their names, because a sanitizer may have threads of its own. */
static void every_thread_is_told(void **state) {
    (void)state;
    enum { COUNT = 20 };
    pthread_t threads[COUNT];
    sem_t never;
    struct hang_summary summary = {0};
    struct duration a_minute = {60000000000};
    struct hang_report report = {
        .fd = -1, .is_held = true, .end = instant_after(clock_now(), a_minute)};
    sem_init(&never, 0, 0);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, wait_for_ever, &never), 0);
        assert_int_equal(pthread_setname_np(threads[i], "one_of_twenty"), 0);
    }
    hang_evidence_write_threads(&report, getpid(), &summary);
    int told = 0;
    for (const char *at = text_string(&report.text); (at = strstr(at, "(one_of_twenty)")) != NULL;
         at++) {
        told++;
    }
    assert_int_equal(told, COUNT);
    assert_true(summary.thread_count >= COUNT + 1);
    for (int i = 0; i < COUNT; i++) {
        sem_post(&never);
    }
    for (int i = 0; i < COUNT; i++) {
        pthread_join(threads[i], NULL);
    }
    sem_destroy(&never);
    text_clear(&report.text);
    hang_summary_clear(&summary);
}

static void a_process_that_is_gone_is_said_to_be(void **state) {
    (void)state;
    struct hang_fixture fixture;
    struct hang_summary summary = {0};
    hang_fixture_init(&fixture, "echo");
    processes_wait(&fixture.process);
    hang_evidence_write_threads(&fixture.report, fixture.process.pid, &summary);
    assert_int_equal(summary.state, 0);
    hang_fixture_expect(&fixture, "the process is gone");
    fixture.process = processes_start_shell("exit 0", -1, -1);
    hang_summary_clear(&summary);
    hang_fixture_clear(&fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_reader_of_a_pipe_is_seen_in_its_call),
    cmocka_unit_test(a_stopped_process_is_seen_as_that),
    cmocka_unit_test(every_thread_is_told),
    cmocka_unit_test(a_process_that_is_gone_is_said_to_be),
};

UNIT_TESTS(tests)
