/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <signal.h>
#include <sys/socket.h>
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
    int pieces;
    int64_t news; /* that there are for followers */
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

/* Pieces, and who follows. */

#define PIECES 5

static enum snapshot_answer answer_in_pieces(
    void *context, struct snapshot_question *question, struct text *out) {
    struct fixture *fixture = context;
    fixture->pieces++;
    if (text_equals(question->path, "/follow")) {
        if (question->place == 0) {
            question->place = 1;
            text_append(out, "head\n");
        }
        while (question->place <= fixture->news) {
            text_append_format(out, "news %d\n", (int)question->place++);
        }
        return SNAPSHOT_FOLLOWED;
    }
    for (size_t i = 0; i < SNAPSHOT_PIECE_BYTES / 11; i++) {
        text_append(out, "0123456789\n");
    }
    return ++question->place < PIECES ? SNAPSHOT_PIECE : SNAPSHOT_WHOLE;
}

static void open_asked(struct fixture *fixture) {
    signal(SIGPIPE, SIG_IGN); /* as agents do */
    assert_int_equal(snapshot_socket_new_asked(fixture->loop, fixture->path, answer_in_pieces,
                         fixture, &fixture->socket, NULL),
        FAILURE_NONE);
}

static int ask(struct fixture *fixture, const char *question) {
    int fd;
    assert_int_equal(
        snapshot_socket_ask(fixture->path, question, duration_from_seconds(10), &fd, NULL),
        FAILURE_NONE);
    return fd;
}

/* What comes until `end` has. */
static void expect_text(struct fixture *fixture, int fd, const char *end, char *out, size_t size) {
    size_t length = 0;
    do {
        event_loop_run_ready(fixture->loop);
        ssize_t count = recv(fd, out + length, size - 1 - length, MSG_DONTWAIT);
        length += count > 0 ? (size_t)count : 0;
        out[length] = '\0';
    } while (strstr(out, end) == NULL);
}

FIXTURE_TEST(a_long_answer_is_made_in_pieces_and_one_turn_makes_one) {
    open_asked(fixture);
    int fd = ask(fixture, "GET /all HTTP/1.1\r\n\r\n");
    char chunk[65536];
    size_t length = 0;
    ssize_t count;
    do {
        int before = fixture->pieces;
        event_loop_run_ready(fixture->loop);
        /* From libuv 1.45 on a turn ends with the timers: of what was written, and of what was due.
         */
        assert_in_range(fixture->pieces - before, 0, 2);
        count = recv(fd, chunk, sizeof chunk, MSG_DONTWAIT);
        length += count > 0 ? (size_t)count : 0;
    } while (count != 0);
    assert_int_equal(fixture->pieces, PIECES);
    assert_int_equal(length, PIECES * (SNAPSHOT_PIECE_BYTES / 11) * 11);
    close(fd);
}

FIXTURE_TEST(who_does_not_read_gets_no_further_pieces) {
    open_asked(fixture);
    int silent[8];
    for (int i = 0; i < 8; i++) {
        silent[i] = ask(fixture, "GET /all HTTP/1.1\r\n\r\n");
    }
    for (int i = 0; i < 100; i++) {
        event_loop_run_ready(fixture->loop);
    }
    assert_in_range(fixture->pieces, 8, 8 * PIECES - 1);
    for (int i = 0; i < 8; i++) {
        close(silent[i]);
    }
}

FIXTURE_TEST(who_follows_hears_what_is_new_and_takes_no_place_of_those_who_ask) {
    char text[256];
    int followers[8];
    open_asked(fixture);
    for (int i = 0; i < 8; i++) {
        followers[i] = ask(fixture, "GET /follow HTTP/1.1\r\n\r\n");
        expect_text(fixture, followers[i], "head\n", text, sizeof text);
    }
    int ninth = ask(fixture, "GET /follow HTTP/1.1\r\n\r\n");
    expect_text(fixture, ninth, "8 follow already\n", text, sizeof text);
    assert_non_null(strstr(text, "HTTP/1.1 503 "));
    close(ninth);
    int asker = ask(fixture, "GET /all HTTP/1.1\r\n\r\n");
    expect_text(fixture, asker, "0123456789\n", text, 32);
    close(asker);
    fixture->news = 2;
    snapshot_socket_wake(fixture->socket);
    for (int i = 0; i < 8; i++) {
        expect_text(fixture, followers[i], "news 2\n", text, sizeof text);
        assert_string_equal(text, "news 1\nnews 2\n");
    }
    close(followers[0]);
    while (event_loop_run_ready(fixture->loop), fixture->pieces < 100) {
        int again = ask(fixture, "GET /follow HTTP/1.1\r\n\r\n");
        expect_text(fixture, again, "\n", text, sizeof text);
        close(followers[1]);
        followers[1] = again;
        if (strstr(text, "503") == NULL) {
            break; /* it has taken the place of the one that went */
        }
    }
    assert_null(strstr(text, "503"));
    for (int i = 1; i < 8; i++) {
        close(followers[i]);
    }
}
