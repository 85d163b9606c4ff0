/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/watchdog/timer_queue.h"
#include "temporary_tree.h"

struct fixture {
    struct temporary_tree tree;
    char *path;
    struct event_loop *loop;
    struct timer_fifo *fifo;
    struct text lines;
};

static void note_line(void *context, struct slice line) {
    struct fixture *fixture = context;
    text_append_bytes(&fixture->lines, (const char *)line.data, line.length);
}

static bool take_if_whole(void *context, struct slice line) {
    bool is_whole = line.data[0] == '{';
    if (is_whole) {
        note_line(context, line);
        text_append(&((struct fixture *)context)->lines, "!");
    }
    return is_whole;
}

static enum failure_code open_fifo(
    struct fixture *fixture, const char *path, struct failure *failure) {
    const struct timer_fifo_reader reader = {note_line, take_if_whole, fixture};
    return timer_fifo_new(fixture->loop, path, &reader, &fixture->fifo, failure);
}

static void make_fifo(struct fixture *fixture) {
    struct failure failure;
    if (open_fifo(fixture, fixture->path, &failure) != FAILURE_NONE) {
        fail_msg("%s", failure.message);
    }
}

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){0};
    temporary_tree_init(&fixture->tree);
    fixture->path = temporary_tree_path(&fixture->tree, "timers");
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
}

static void tear_down(struct fixture *fixture) {
    timer_fifo_free(fixture->fifo);
    assert_true(event_loop_free(fixture->loop));
    text_clear(&fixture->lines);
    free(fixture->path);
    temporary_tree_clear(&fixture->tree);
}

/* As FileTimerClient opens it. */
static int open_writer(const struct fixture *fixture) {
    int fd = open(fixture->path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

static void say(int fd, const char *text) {
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void say_once(const struct fixture *fixture, const char *text) {
    int fd = open_writer(fixture);
    say(fd, text);
    close(fd);
}

static void expect_lines(struct fixture *fixture, const char *expected) {
    event_loop_run_ready(fixture->loop);
    assert_string_equal(text_string(&fixture->lines), expected);
    fixture->lines.length = 0;
    text_append(&fixture->lines, "");
}

FIXTURE_TEST(writers_come_and_go) {
    make_fifo(fixture);
    say_once(fixture, "one\n");
    say_once(fixture, "two\n");
    expect_lines(fixture, "one\ntwo\n");
    event_loop_run_ready(fixture->loop);
    say_once(fixture, "three\n");
    expect_lines(fixture, "three\n");
}

FIXTURE_TEST(an_unfinished_line_stays_in_front_of_the_next) {
    make_fifo(fixture);
    int stopped = open_writer(fixture);
    say(stopped, "half");
    expect_lines(fixture, "");
    say_once(fixture, "whole\n");
    expect_lines(fixture, "halfwhole\n");
    say(stopped, "rest\n");
    expect_lines(fixture, "rest\n");
    close(stopped);
}

FIXTURE_TEST(a_last_line_needs_no_newline_when_it_is_whole) {
    make_fifo(fixture);
    say_once(fixture, "half}");
    expect_lines(fixture, "");
    say_once(fixture, "rest\n{whole}");
    expect_lines(fixture, "half}rest\n{whole}!");
    say_once(fixture, "next\n");
    expect_lines(fixture, "next\n");
}

/* Only root can give a file to another user. Without root the test shows that a user's own FIFO is
 * replaced. */
FIXTURE_TEST(a_fifo_of_another_user_is_left_alone) {
    struct failure failure;
    struct stat status;
    assert_int_equal(mkfifo(fixture->path, 0666), 0);
    bool is_given_away = chown(fixture->path, 12345, (gid_t)-1) == 0;
    if (is_given_away) {
        assert_int_equal(open_fifo(fixture, fixture->path, &failure), FAILURE_INVALID);
        assert_non_null(strstr(failure.message, "belongs to another user"));
        assert_int_equal(stat(fixture->path, &status), 0);
        assert_int_equal(status.st_uid, 12345);
    } else {
        make_fifo(fixture);
    }
}

FIXTURE_TEST(dropped_input_is_not_seen_again) {
    make_fifo(fixture);
    say_once(fixture, "half");
    expect_lines(fixture, "");
    say_once(fixture, "rest\nunread\n");
    timer_fifo_drop_input(fixture->fifo);
    say_once(fixture, "new\n");
    expect_lines(fixture, "new\n");
}

FIXTURE_TEST(input_can_be_taken_at_once) {
    char line[4096];
    make_fifo(fixture);
    memset(line, 'a', sizeof line);
    line[sizeof line - 1] = '\n';
    int fd = open_writer(fixture);
    size_t written = 0;
    for (ssize_t length; (length = write(fd, line, sizeof line)) > 0;) {
        written += (size_t)length; /* until it is full */
    }
    timer_fifo_take_input(fixture->fifo);
    assert_int_equal(fixture->lines.length, written);
    timer_fifo_take_input(fixture->fifo);
    assert_int_equal(fixture->lines.length, written);
    close(fd);
}

FIXTURE_TEST(it_is_for_this_user_and_gone_afterwards) {
    struct stat status;
    assert_false(timer_fifo_is_served(fixture->path));
    make_fifo(fixture);
    assert_int_equal(stat(fixture->path, &status), 0);
    assert_true(S_ISFIFO(status.st_mode));
    assert_int_equal(status.st_mode & 07777, 0600);
    assert_true(timer_fifo_is_served(fixture->path));
    timer_fifo_free(fixture->fifo);
    fixture->fifo = NULL;
    assert_false(temporary_tree_has(&fixture->tree, "timers"));
}

FIXTURE_TEST(a_directory_that_is_missing_is_told) {
    struct failure failure;
    assert_int_equal(open_fifo(fixture, "/nonexistent/timers", &failure), FAILURE_SYSTEM);
    assert_non_null(strstr(failure.message, "/nonexistent/timers"));
}

FIXTURE_TEST(somebody_elses_file_is_not_removed_at_the_end) {
    make_fifo(fixture);
    assert_int_equal(unlink(fixture->path), 0);
    temporary_tree_write(&fixture->tree, "timers", "precious");
    timer_fifo_free(fixture->fifo);
    fixture->fifo = NULL;
    assert_true(temporary_tree_has(&fixture->tree, "timers"));
}
