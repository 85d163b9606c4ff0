/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "agent/workers/attempt_logs.h"
#include "base/text.h"

/* What stands in for the disk: files called "hangs" wait until somebody lets them go on, "broken"
 * cannot be read, "missing" is not there, and the others hold their names. */
static int gate[2];
static atomic_int waiting_count;
static atomic_int passed_count;

static enum failure_code read_made_up(
    const char *path, size_t ceiling, struct bytes *out_bytes, struct failure *failure) {
    char byte;
    if (strcmp(path, "missing") == 0) {
        return failure_set(failure, FAILURE_MISSING, "nothing is there");
    }
    if (strcmp(path, "broken") == 0) {
        return failure_set(failure, FAILURE_SYSTEM, "the disk is broken");
    }
    if (strcmp(path, "hangs") == 0) {
        atomic_fetch_add(&waiting_count, 1);
        assert_int_equal(read(gate[0], &byte, 1), 1);
        atomic_fetch_add(&passed_count, 1);
    }
    assert_true(ceiling > strlen(path));
    return bytes_append(out_bytes, path, strlen(path));
}

/* Much longer than anything here takes, and no time at all. */
static const struct duration long_patience = {INT64_C(600000000000)};
static const struct duration no_patience = {0};

struct fixture {
    struct event_loop *loop;
    struct blocking_pool *pool;
    struct worker_errors *errors;
    int answer_count;
};

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){0};
    atomic_store(&waiting_count, 0);
    atomic_store(&passed_count, 0);
    assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    assert_int_equal(blocking_pool_new(fixture->loop, &fixture->pool, NULL), FAILURE_NONE);
    struct worker_errors_settings settings = {
        .loop = fixture->loop,
        .pool = fixture->pool,
        .worker_count = 3,
        .read = read_made_up,
    };
    fixture->errors = worker_errors_new(&settings);
}

static void tear_down(struct fixture *fixture) {
    worker_errors_free(fixture->errors);
    blocking_pool_free(fixture->pool);
    assert_true(event_loop_free(fixture->loop));
    close(gate[0]);
    close(gate[1]);
}

static void await_waiting(int count) {
    while (atomic_load(&waiting_count) != count) {
        usleep(1000);
    }
}

/* Returns when the one that waited is through, and needs the gate no longer. */
static void open_gate(void) {
    await_waiting(1);
    assert_int_equal(write(gate[1], "x", 1), 1);
    while (atomic_load(&passed_count) != 1) {
        usleep(1000);
    }
}

static void answered(void *context) {
    struct fixture *fixture = context;
    fixture->answer_count++;
    event_loop_stop(fixture->loop);
}

static void await_errors(struct fixture *fixture, int local_rank, struct duration patience) {
    worker_errors_await(fixture->errors, local_rank, patience, answered, fixture);
}

static void assert_error(const struct fixture *fixture, int local_rank, enum failure_code code) {
    assert_int_equal(worker_errors_get(fixture->errors, local_rank)->code, code);
}

FIXTURE_TEST(nobody_waits_for_files_that_are_not_read) {
    worker_errors_read(fixture->errors, 1, NULL);
    await_errors(fixture, 1, long_patience);
    await_errors(fixture, WORKER_ERRORS_ALL, long_patience);
    assert_int_equal(fixture->answer_count, 2);
    assert_null(worker_errors_get(fixture->errors, 1));
}

FIXTURE_TEST(wait_ends_when_all_files_have_been_read) {
    worker_errors_read(fixture->errors, 0, "words");
    worker_errors_read(fixture->errors, 1, "missing");
    worker_errors_read(fixture->errors, 2, "broken");
    await_errors(fixture, WORKER_ERRORS_ALL, long_patience);
    assert_int_equal(fixture->answer_count, 0);
    event_loop_run(fixture->loop);
    assert_int_equal(fixture->answer_count, 1);
    assert_error(fixture, 0, FAILURE_NONE);
    assert_true(slice_equals(
        bytes_slice(&worker_errors_get(fixture->errors, 0)->content), slice_from_string("words")));
    assert_error(fixture, 1, FAILURE_MISSING);
    assert_string_equal(
        worker_errors_get(fixture->errors, 2)->failure.message, "the disk is broken");
}

FIXTURE_TEST(wait_for_one_file_does_not_wait_for_another) {
    worker_errors_read(fixture->errors, 2, "hangs");
    await_waiting(1);
    worker_errors_read(fixture->errors, 1, "words");
    await_errors(fixture, 1, long_patience);
    event_loop_run(fixture->loop);
    assert_int_equal(fixture->answer_count, 1);
    assert_error(fixture, 1, FAILURE_NONE);
    assert_error(fixture, 2, FAILURE_TIMEOUT);
    open_gate();
    await_errors(fixture, 2, long_patience);
    event_loop_run(fixture->loop);
    assert_error(fixture, 2, FAILURE_NONE);
}

FIXTURE_TEST(wait_ends_without_a_file_that_hangs) {
    worker_errors_read(fixture->errors, 0, "hangs");
    await_errors(fixture, 0, duration_from_milliseconds(1));
    event_loop_run(fixture->loop); /* as long as the patience lasts */
    assert_int_equal(fixture->answer_count, 1);
    assert_error(fixture, 0, FAILURE_TIMEOUT);
    assert_string_equal(worker_errors_get(fixture->errors, 0)->failure.message,
        "cannot read hangs: the disk did not answer in time");
    open_gate();
    while (worker_errors_get(fixture->errors, 0)->code == FAILURE_TIMEOUT) {
        event_loop_run_ready(fixture->loop);
    }
    assert_true(slice_equals(bytes_slice(&worker_errors_get(fixture->errors, 0)->content),
        slice_from_string("hangs"))); /* what comes late is there for the report */
    assert_int_equal(fixture->answer_count, 1);
}

FIXTURE_TEST(patience_counts_from_the_beginning_of_the_reading) {
    worker_errors_read(fixture->errors, 0, "hangs");
    await_errors(fixture, 0, no_patience);
    assert_int_equal(fixture->answer_count, 1);
    open_gate();
}

/* The loop does not run while the file is read, and for much longer. */
FIXTURE_TEST(file_that_was_read_while_the_loop_was_held_up_is_in_time) {
    worker_errors_read(fixture->errors, 0, "words");
    worker_errors_read(fixture->errors, 1, "words");
    await_errors(fixture, WORKER_ERRORS_ALL, duration_from_milliseconds(10));
    usleep(100 * 1000);
    event_loop_run(fixture->loop);
    assert_int_equal(fixture->answer_count, 1);
    assert_error(fixture, 0, FAILURE_NONE);
    assert_error(fixture, 1, FAILURE_NONE);
}

FIXTURE_TEST(new_attempt_knows_nothing_of_the_one_before) {
    worker_errors_read(fixture->errors, 0, "hangs");
    worker_errors_read(fixture->errors, 1, "words");
    await_errors(fixture, 1, long_patience);
    event_loop_run(fixture->loop);
    await_errors(fixture, 0, long_patience);
    worker_errors_begin(fixture->errors);
    assert_null(worker_errors_get(fixture->errors, 0));
    assert_null(worker_errors_get(fixture->errors, 1));
    open_gate();
    worker_errors_read(fixture->errors, 0, "missing");
    await_errors(fixture, WORKER_ERRORS_ALL, long_patience);
    event_loop_run(fixture->loop);
    assert_int_equal(fixture->answer_count, 2); /* one wait was forgotten */
    assert_error(fixture, 0, FAILURE_MISSING);
}

FIXTURE_TEST(file_can_be_read_again) {
    worker_errors_read(fixture->errors, 0, "words");
    await_errors(fixture, 0, long_patience);
    event_loop_run(fixture->loop);
    assert_error(fixture, 0, FAILURE_NONE);
    worker_errors_read(fixture->errors, 0, "missing"); /* the worker that was stuck has ended */
    await_errors(fixture, 0, long_patience);
    event_loop_run(fixture->loop);
    assert_error(fixture, 0, FAILURE_MISSING);
    assert_int_equal(worker_errors_get(fixture->errors, 0)->content.length, 0);
}
