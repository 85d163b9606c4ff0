/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <fcntl.h>
#include <unistd.h>

#include "agent/workers/agent_workers.h"
#include "temporary_tree.h"

struct fixture {
    struct temporary_tree tree;
    struct event_loop *loop;
    struct log_thread *thread;
    struct finished_logs *logs;
    int null_fd;
};

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){.null_fd = open("/dev/null", O_WRONLY | O_CLOEXEC)};
    temporary_tree_init(&fixture->tree);
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    const struct log_thread_settings settings = {
        .loop = fixture->loop,
        .stdout_fd = fixture->null_fd,
        .stderr_fd = fixture->null_fd,
        .patience = duration_from_seconds(60),
    };
    assert_int_equal(log_thread_new(&settings, &fixture->thread, NULL), FAILURE_NONE);
    fixture->logs = finished_logs_new(fixture->loop, fixture->thread);
}

static void tear_down(struct fixture *fixture) {
    finished_logs_free(fixture->logs);
    assert_true(log_thread_free(fixture->thread));
    assert_true(event_loop_free(fixture->loop));
    temporary_tree_clear(&fixture->tree);
    close(fixture->null_fd);
}

static const struct duration long_patience = {INT64_C(600000000000)};

static void what_a_worker_wrote_is_in_its_file_after_the_wait(void **state) {
    (void)state;
    struct fixture fixture;
    struct log_stream *stream;
    int fd;
    set_up(&fixture);
    char *path = temporary_tree_path(&fixture.tree, "stderr.log");
    assert_int_equal(log_stream_open(path, "", &stream, &fd, NULL), FAILURE_NONE);
    assert_int_equal(write(fd, "boom\n", 5), 5);
    log_thread_add_stream(fixture.thread, stream, LOG_CONSOLE_NONE);
    finished_logs_ask(fixture.logs);
    assert_true(finished_logs_await(fixture.logs, long_patience));
    char content[8] = "";
    int file = open(path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(read(file, content, sizeof content), 5);
    assert_string_equal(content, "boom\n");
    close(file);
    close(fd);
    free(path);
    tear_down(&fixture);
}

static void nobody_waits_where_nothing_is_asked_for(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    assert_true(finished_logs_await(fixture.logs, long_patience));
    struct finished_logs *none = finished_logs_new(fixture.loop, NULL);
    finished_logs_ask(none);
    assert_true(finished_logs_await(none, long_patience));
    finished_logs_free(none);
    tear_down(&fixture);
}

static void stop_loop(void *context) {
    event_loop_stop(context);
}

/* AddressSanitizer sees whether the answer finds its memory. */
static void the_thread_may_answer_when_nobody_waits_any_more(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture);
    finished_logs_ask(fixture.logs);
    finished_logs_ask(fixture.logs);
    finished_logs_free(fixture.logs);
    fixture.logs = NULL;
    log_thread_drain(fixture.thread, long_patience, stop_loop, fixture.loop);
    event_loop_run(fixture.loop);
    tear_down(&fixture);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_a_worker_wrote_is_in_its_file_after_the_wait),
    cmocka_unit_test(nobody_waits_where_nothing_is_asked_for),
    cmocka_unit_test(the_thread_may_answer_when_nobody_waits_any_more),
};

UNIT_TESTS(tests)
