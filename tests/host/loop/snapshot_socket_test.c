/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/loop/snapshot_socket.h"
#include "temporary_tree.h"

struct fixture {
    struct temporary_tree tree;
    char *path;
    struct event_loop *loop;
    struct snapshot_socket *socket;
    size_t repetitions;
};

static void append_state(void *context, struct text *out) {
    const struct fixture *fixture = context;
    for (size_t i = 0; i < fixture->repetitions; i++) {
        text_append(out, "0123456789\n");
    }
}

static enum failure_code open_socket(struct fixture *fixture, struct failure *failure) {
    return snapshot_socket_new(
        fixture->loop, fixture->path, append_state, fixture, &fixture->socket, failure);
}

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){.repetitions = 1};
    temporary_tree_init(&fixture->tree);
    fixture->path = temporary_tree_path(&fixture->tree, "socket");
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
}

static void tear_down(struct fixture *fixture) {
    snapshot_socket_free(fixture->socket);
    assert_true(event_loop_free(fixture->loop));
    free(fixture->path);
    temporary_tree_clear(&fixture->tree);
}

static void count_line(void *context, struct slice line) {
    size_t *count = context;
    *count += slice_equals(line, slice_from_string("0123456789"));
}

/* A child reads while this process serves; its status is 0 when it got all of the text. */
static void expect_reader(struct fixture *fixture) {
    int status;
    pid_t child = fork();
    if (child == 0) {
        size_t lines = 0;
        enum failure_code code = snapshot_socket_read(
            fixture->path, NULL, duration_from_seconds(10), count_line, &lines, NULL);
        _exit(code == FAILURE_NONE && lines == fixture->repetitions ? 0 : 1);
    }
    while (waitpid(child, &status, WNOHANG) == 0) {
        event_loop_run_ready(fixture->loop);
    }
    assert_int_equal(status, 0);
}

FIXTURE_TEST(whoever_connects_gets_the_state) {
    struct stat status;
    assert_int_equal(open_socket(fixture, NULL), FAILURE_NONE);
    assert_int_equal(stat(fixture->path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    expect_reader(fixture);
    fixture->repetitions = 200000;
    expect_reader(fixture);
    fixture->repetitions = 0;
    expect_reader(fixture);
    for (int i = 0; i < 10; i++) {
        expect_reader(fixture);
    }
}

static void append_long_line(void *context, struct text *out) {
    (void)context;
    append_state(context, out);
    for (size_t i = 0; i <= SNAPSHOT_LINE_MAXIMUM; i++) {
        text_append_bytes(out, "x", 1);
    }
}

FIXTURE_TEST(a_line_that_is_too_long_is_not_kept) {
    int status;
    assert_int_equal(snapshot_socket_new(fixture->loop, fixture->path, append_long_line, fixture,
                         &fixture->socket, NULL),
        FAILURE_NONE);
    pid_t child = fork();
    if (child == 0) {
        size_t lines = 0;
        struct failure failure;
        enum failure_code code = snapshot_socket_read(
            fixture->path, NULL, duration_from_seconds(10), count_line, &lines, &failure);
        _exit(code == FAILURE_LIMIT && lines == 1 ? 0 : 1);
    }
    while (waitpid(child, &status, WNOHANG) == 0) {
        event_loop_run_ready(fixture->loop);
    }
    assert_int_equal(status, 0);
}

FIXTURE_TEST(the_socket_is_gone_afterwards) {
    struct failure failure;
    size_t lines = 0;
    assert_int_equal(open_socket(fixture, NULL), FAILURE_NONE);
    snapshot_socket_free(fixture->socket);
    fixture->socket = NULL;
    assert_false(temporary_tree_has(&fixture->tree, "socket"));
    assert_int_equal(snapshot_socket_read(fixture->path, NULL, duration_from_seconds(10),
                         count_line, &lines, &failure),
        FAILURE_SYSTEM);
    assert_non_null(strstr(failure.message, "nobody answers"));
    assert_int_equal(lines, 0);
}

FIXTURE_TEST(an_old_socket_is_replaced_and_no_other_file) {
    struct snapshot_socket *old;
    assert_int_equal(open_socket(fixture, NULL), FAILURE_NONE);
    old = fixture->socket;
    assert_int_equal(open_socket(fixture, NULL), FAILURE_NONE);
    snapshot_socket_free(old);
    assert_true(temporary_tree_has(&fixture->tree, "socket"));
    snapshot_socket_free(fixture->socket);
    fixture->socket = NULL;
    temporary_tree_write(&fixture->tree, "socket", "precious");
    assert_int_equal(open_socket(fixture, NULL), FAILURE_INVALID);
    assert_true(temporary_tree_has(&fixture->tree, "socket"));
}

FIXTURE_TEST(its_path_may_be_long) {
    char name[101] = {0};
    memset(name, 'd', sizeof name - 1);
    char *directory = temporary_tree_path(&fixture->tree, name);
    assert_int_equal(mkdir(directory, 0700), 0);
    free(fixture->path);
    fixture->path = text_format("%s/socket", directory);
    assert_int_equal(open_socket(fixture, NULL), FAILURE_NONE);
    expect_reader(fixture);
    free(directory);
}
