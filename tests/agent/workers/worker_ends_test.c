/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "agent/workers/worker_ends.h"
#include "base/text.h"

/* What stands in for the disk: files called "hangs" wait until somebody lets them go on, "broken"
 * cannot be read, "missing" is not there, and the others hold their names. */
static int gate[2];
static atomic_int waiting_count;

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
    }
    assert_true(ceiling > strlen(path));
    return bytes_append(out_bytes, path, strlen(path));
}

struct fixture {
    struct event_loop *loop;
    struct errands *errands;
    struct worker_ends *ends;
    struct text story; /* "0:5" worker 0 ended with 5, "0:5?" and its file is still read; "gone" */
};

static void exited(void *context, int local_rank, struct process_exit how) {
    struct fixture *fixture = context;
    const struct worker_error *error = worker_ends_error(fixture->ends, local_rank);
    bool is_late = error != NULL && error->code == FAILURE_TIMEOUT;
    text_append_format(&fixture->story, "%d:%d%s ", local_rank, how.value, is_late ? "?" : "");
}

static void all_gone(void *context) {
    struct fixture *fixture = context;
    text_append(&fixture->story, "gone ");
    event_loop_stop(fixture->loop);
}

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){0};
    atomic_store(&waiting_count, 0);
    assert_int_equal(pipe2(gate, O_CLOEXEC), 0);
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    assert_int_equal(errands_new(fixture->loop, &fixture->errands, NULL), FAILURE_NONE);
    struct worker_ends_settings settings = {
        .loop = fixture->loop,
        .errands = fixture->errands,
        .worker_count = 3,
        .exited = exited,
        .all_gone = all_gone,
        .context = fixture,
        .read = read_made_up,
    };
    fixture->ends = worker_ends_new(&settings);
}

static void tear_down(struct fixture *fixture) {
    worker_ends_free(fixture->ends);
    errands_free(fixture->errands);
    assert_true(event_loop_free(fixture->loop));
    text_clear(&fixture->story);
    close(gate[0]);
    close(gate[1]);
}

static void open_gate(void) {
    assert_int_equal(write(gate[1], "x", 1), 1);
}

static void end(struct fixture *fixture, int local_rank, int status, const char *error_file) {
    worker_ends_add(fixture->ends, local_rank, (struct process_exit){.value = status}, error_file);
}

static void await_waiting(int count) {
    while (atomic_load(&waiting_count) != count) {
        usleep(1000);
    }
}

static void end_without_a_file_is_told_at_once(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    end(&fixture, 1, 0, NULL);
    assert_string_equal(text_string(&fixture.story), "1:0 ");
    worker_ends_add_all_gone(fixture.ends);
    assert_string_equal(text_string(&fixture.story), "1:0 gone ");
    assert_null(worker_ends_error(fixture.ends, 1));
    tear_down(&fixture);
}

static void end_is_told_with_what_its_file_says(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    end(&fixture, 0, 1, "words");
    end(&fixture, 1, 2, "missing");
    end(&fixture, 2, 3, "broken");
    worker_ends_add_all_gone(fixture.ends);
    assert_int_equal(fixture.story.length, 0);
    event_loop_run(fixture.loop);
    assert_string_equal(text_string(&fixture.story), "0:1 1:2 2:3 gone ");
    const struct worker_error *error = worker_ends_error(fixture.ends, 0);
    assert_int_equal(error->code, FAILURE_NONE);
    assert_true(slice_equals(bytes_slice(&error->content), slice_from_string("words")));
    assert_int_equal(worker_ends_error(fixture.ends, 1)->code, FAILURE_MISSING);
    assert_string_equal(worker_ends_error(fixture.ends, 2)->failure.message, "the disk is broken");
    tear_down(&fixture);
}

static void ends_keep_their_order(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    end(&fixture, 2, 1, "hangs");
    end(&fixture, 0, 0, NULL);
    end(&fixture, 1, 3, "words");
    worker_ends_add_all_gone(fixture.ends);
    await_waiting(1);
    assert_int_equal(fixture.story.length, 0);
    open_gate();
    event_loop_run(fixture.loop);
    assert_string_equal(text_string(&fixture.story), "2:1 0:0 1:3 gone ");
    tear_down(&fixture);
}

static void end_is_told_without_a_file_that_hangs(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    end(&fixture, 0, 1, "hangs");
    end(&fixture, 1, 2, "words");
    worker_ends_add_all_gone(fixture.ends);
    event_loop_run(fixture.loop); /* as long as the patience lasts */
    assert_string_equal(text_string(&fixture.story), "0:1? 1:2 gone ");
    const struct worker_error *error = worker_ends_error(fixture.ends, 0);
    assert_int_equal(error->code, FAILURE_TIMEOUT);
    assert_string_equal(
        error->failure.message, "cannot read hangs: the disk did not answer within 0.5 s");
    assert_int_equal(worker_ends_error(fixture.ends, 1)->code, FAILURE_NONE);
    open_gate();
    while (worker_ends_error(fixture.ends, 0)->code == FAILURE_TIMEOUT) {
        event_loop_run_ready(fixture.loop);
    }
    assert_true(slice_equals(bytes_slice(&worker_ends_error(fixture.ends, 0)->content),
        slice_from_string("hangs"))); /* what comes late is there for the report */
    assert_string_equal(text_string(&fixture.story), "0:1? 1:2 gone ");
    tear_down(&fixture);
}

/* The loop does not run while the file is read, and for much longer. */
static void file_that_was_read_while_the_loop_was_held_up_is_in_time(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    end(&fixture, 0, 1, "words");
    end(&fixture, 1, 2, "words");
    worker_ends_add_all_gone(fixture.ends);
    usleep((WORKER_ENDS_PATIENCE_MILLISECONDS + 100) * 1000);
    event_loop_run(fixture.loop);
    assert_string_equal(text_string(&fixture.story), "0:1 1:2 gone ");
    tear_down(&fixture);
}

static void new_attempt_knows_nothing_of_the_one_before(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    end(&fixture, 0, 1, "hangs");
    end(&fixture, 1, 1, "words");
    worker_ends_add_all_gone(fixture.ends);
    event_loop_run(fixture.loop);
    worker_ends_begin(fixture.ends);
    assert_null(worker_ends_error(fixture.ends, 0));
    assert_null(worker_ends_error(fixture.ends, 1));
    open_gate();
    end(&fixture, 0, 4, "missing");
    worker_ends_add_all_gone(fixture.ends);
    event_loop_run(fixture.loop);
    assert_string_equal(text_string(&fixture.story), "0:1? 1:1 gone 0:4 gone ");
    assert_int_equal(worker_ends_error(fixture.ends, 0)->code, FAILURE_MISSING);
    tear_down(&fixture);
}

static void file_of_a_worker_that_runs_can_be_read(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    worker_ends_read(fixture.ends, 0, "words");
    worker_ends_read(fixture.ends, 0, NULL);
    while (worker_ends_error(fixture.ends, 0)->code == FAILURE_TIMEOUT) {
        event_loop_run_ready(fixture.loop);
    }
    assert_int_equal(worker_ends_error(fixture.ends, 0)->code, FAILURE_NONE);
    end(&fixture, 0, 1, "missing"); /* it is looked at again when it has ended */
    worker_ends_add_all_gone(fixture.ends);
    event_loop_run(fixture.loop);
    assert_int_equal(worker_ends_error(fixture.ends, 0)->code, FAILURE_MISSING);
    assert_int_equal(worker_ends_error(fixture.ends, 0)->content.length, 0);
    assert_string_equal(text_string(&fixture.story), "0:1 gone ");
    tear_down(&fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(end_without_a_file_is_told_at_once),
    cmocka_unit_test(end_is_told_with_what_its_file_says),
    cmocka_unit_test(ends_keep_their_order),
    cmocka_unit_test(end_is_told_without_a_file_that_hangs),
    cmocka_unit_test(file_that_was_read_while_the_loop_was_held_up_is_in_time),
    cmocka_unit_test(new_attempt_knows_nothing_of_the_one_before),
    cmocka_unit_test(file_of_a_worker_that_runs_can_be_read),
};

TEST_MAIN(tests)
