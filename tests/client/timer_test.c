/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "muster/timer.h"
#include "temporary_tree.h"
#include "wire/watchdog/timer_request_json.h"

struct fixture {
    struct temporary_tree tree;
    char *path;
    int server; /* the reading end */
    struct muster_timer timer;
};

static void set_up(struct fixture *fixture) {
    temporary_tree_init(&fixture->tree);
    fixture->path = temporary_tree_path(&fixture->tree, "timers");
    assert_int_equal(mkfifo(fixture->path, 0600), 0);
    fixture->server = open(fixture->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(fixture->server >= 0);
    assert_int_equal(muster_timer_open(&fixture->timer, fixture->path), 0);
}

static void tear_down(struct fixture *fixture) {
    muster_timer_close(&fixture->timer);
    close(fixture->server);
    free(fixture->path);
    temporary_tree_clear(&fixture->tree);
}

/* One line has arrived, and means this. */
static struct watchdog_request expect_request(struct fixture *fixture) {
    char line[MUSTER_TIMER_LINE_SIZE + 1];
    struct watchdog_request request;
    struct text reason = {0};
    ssize_t length = read(fixture->server, line, sizeof line);
    assert_true(length > 0);
    assert_int_equal(line[length - 1], '\n');
    struct slice text = {(const uint8_t *)line, (size_t)length};
    if (timer_request_json_read(text, &request, &reason) != FAILURE_NONE) {
        fail_msg("%.*s: %s", (int)length, line, text_string(&reason));
    }
    text_clear(&reason);
    return request;
}

static void expect_silence(struct fixture *fixture) {
    char byte;
    assert_true(read(fixture->server, &byte, 1) <= 0);
}

static void expect_scope(
    struct fixture *fixture, enum watchdog_request_kind kind, const char *scope) {
    struct watchdog_request request = expect_request(fixture);
    assert_int_equal(request.kind, kind);
    assert_int_equal(request.pid, getpid());
    assert_string_equal(request.scope, scope);
    watchdog_request_clear(&request);
}

FIXTURE_TEST(a_timer_is_asked_for_and_given_back) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    assert_int_equal(muster_timer_acquire(&fixture->timer, "step", 30), 0);
    struct watchdog_request request = expect_request(fixture);
    assert_int_equal(request.kind, WATCHDOG_ACQUIRE);
    assert_int_equal(request.signal, SIGKILL);
    assert_in_range(request.expiration.nanoseconds / 1000000000, now.tv_sec + 29, now.tv_sec + 90);
    watchdog_request_clear(&request);
    assert_int_equal(muster_timer_release(&fixture->timer, "step"), 0);
    expect_scope(fixture, WATCHDOG_RELEASE, "step");
}

static void leave_early(struct fixture *fixture) {
    MUSTER_TIMER_SCOPE(&fixture->timer, "outer", 30);
    expect_scope(fixture, WATCHDOG_ACQUIRE, "outer");
    {
        MUSTER_TIMER_SCOPE(&fixture->timer, "inner", 30);
        expect_scope(fixture, WATCHDOG_ACQUIRE, "inner");
        errno = EDOM;
    }
    assert_int_equal(errno, EDOM);
    expect_scope(fixture, WATCHDOG_RELEASE, "inner");
}

FIXTURE_TEST(a_scope_is_left_with_its_block) {
    leave_early(fixture);
    expect_scope(fixture, WATCHDOG_RELEASE, "outer");
    expect_silence(fixture);
}

FIXTURE_TEST(every_scope_arrives_as_it_was) {
    static const char *const scopes[] = {"", "a \"quoted\" \\ one\n\t\x7f",
        ("gr\xc3\xb6\xc3\x9f" /* or the e after it would be a digit */
         "e \xe2\x82\xac"),
        "\xf0\x9f\x90\x8d"};
    for (size_t i = 0; i < sizeof scopes / sizeof *scopes; i++) {
        assert_int_equal(muster_timer_acquire(&fixture->timer, scopes[i], 1), 0);
        expect_scope(fixture, WATCHDOG_ACQUIRE, scopes[i]);
    }
    assert_int_equal(muster_timer_acquire(&fixture->timer, "a\xff\xc3(\xed\xa0\x80\xf0\x9f", 1), 0);
    expect_scope(fixture, WATCHDOG_ACQUIRE,
        "a\xef\xbf\xbd\xef\xbf\xbd(\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
}

FIXTURE_TEST(what_cannot_be_asked_for_is_refused) {
    char scope[MUSTER_TIMER_LINE_SIZE];
    memset(scope, 'x', sizeof scope);
    scope[sizeof scope - 1] = '\0';
    assert_int_equal(muster_timer_acquire(&fixture->timer, scope, 1), -1);
    assert_int_equal(errno, EMSGSIZE);
    assert_int_equal(muster_timer_acquire(&fixture->timer, "s", -1), -1);
    assert_int_equal(errno, EINVAL);
    assert_int_equal(muster_timer_acquire(&fixture->timer, "s", (double)NAN), -1);
    assert_int_equal(errno, EINVAL);
    expect_silence(fixture);
    scope[MUSTER_TIMER_LINE_SIZE - 200] = '\0';
    assert_int_equal(muster_timer_acquire(&fixture->timer, scope, 1), 0);
    expect_scope(fixture, WATCHDOG_ACQUIRE, scope);
}

FIXTURE_TEST(an_open_fifo_is_kept_when_asked_for) {
    char *moved = NULL;
    assert_int_equal(muster_timer_keep_open(&fixture->timer), 0);
    moved = temporary_tree_path(&fixture->tree, "moved");
    assert_int_equal(rename(fixture->path, moved), 0);
    assert_int_equal(muster_timer_acquire(&fixture->timer, "s", 1), 0);
    expect_scope(fixture, WATCHDOG_ACQUIRE, "s");
    free(moved);
}

FIXTURE_TEST(a_full_fifo_loses_nothing) {
    size_t accepted = 0;
    fixture->timer.patience = 0;
    while (muster_timer_acquire(&fixture->timer, "s", 1) == 0) {
        accepted++;
    }
    assert_int_equal(errno, ETIMEDOUT);
    assert_true(accepted > 100);
    fixture->timer.patience = 60;
    pid_t child = fork();
    if (child == 0) {
        _exit(muster_timer_acquire(&fixture->timer, "late", 1) == 0 ? 0 : 1);
    }
    size_t lines = 0;
    char chunk[4096];
    int status;
    while (lines < accepted + 1) {
        ssize_t length = read(fixture->server, chunk, sizeof chunk);
        for (ssize_t i = 0; i < length; i++) {
            lines += chunk[i] == '\n';
        }
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    expect_silence(fixture);
}

FIXTURE_TEST(a_child_asks_for_itself) {
    int status;
    pid_t child = fork();
    if (child == 0) {
        _exit(muster_timer_acquire(&fixture->timer, "s", 1) == 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    struct watchdog_request request = expect_request(fixture);
    assert_int_equal(request.pid, child);
    watchdog_request_clear(&request);
}

FIXTURE_TEST(a_server_that_comes_back_is_found_again) {
    assert_int_equal(muster_timer_keep_open(&fixture->timer), 0);
    close(fixture->server);
    fixture->timer.patience = 0;
    assert_int_equal(muster_timer_acquire(&fixture->timer, "s", 1), -1);
    assert_int_equal(errno, ENXIO);
    assert_int_equal(unlink(fixture->path), 0);
    assert_int_equal(muster_timer_acquire(&fixture->timer, "s", 1), -1);
    assert_int_equal(errno, ENOENT);
    assert_int_equal(mkfifo(fixture->path, 0600), 0);
    fixture->server = open(fixture->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_int_equal(muster_timer_acquire(&fixture->timer, "s", 1), 0);
    expect_scope(fixture, WATCHDOG_ACQUIRE, "s");
}

FIXTURE_TEST(without_a_path_the_environment_tells) {
    struct muster_timer timer;
    unsetenv("TORCHELASTIC_TIMER_FILE");
    assert_int_equal(muster_timer_open(&timer, NULL), -1);
    assert_int_equal(errno, ENOENT);
    timer.patience = 0;
    assert_int_equal(muster_timer_acquire(&timer, "s", 1), -1);
    assert_int_equal(errno, ENOENT);
    setenv("TORCHELASTIC_TIMER_FILE", fixture->path, 1);
    assert_int_equal(muster_timer_open(&timer, NULL), 0);
    assert_int_equal(muster_timer_acquire(&timer, "s", 1), 0);
    expect_scope(fixture, WATCHDOG_ACQUIRE, "s");
    muster_timer_close(&timer);
}

#define EXPECT_ERROR(call, error)                                                                  \
    do {                                                                                           \
        errno = 0;                                                                                 \
        assert_int_equal((call), -1);                                                              \
        assert_int_equal(errno, (error));                                                          \
    } while (false)

FIXTURE_TEST(what_is_missing_is_an_error_and_nothing_else) {
    struct muster_timer zeroed = {0};
    EXPECT_ERROR(muster_timer_open(NULL, fixture->path), EINVAL);
    EXPECT_ERROR(muster_timer_keep_open(NULL), EINVAL);
    EXPECT_ERROR(muster_timer_keep_open(&zeroed), ENOENT);
    EXPECT_ERROR(muster_timer_acquire(NULL, "s", 1), EINVAL);
    EXPECT_ERROR(muster_timer_acquire(&zeroed, "s", 1), ENOENT);
    EXPECT_ERROR(muster_timer_acquire(&fixture->timer, NULL, 1), EINVAL);
    EXPECT_ERROR(muster_timer_release(NULL, "s"), EINVAL);
    EXPECT_ERROR(muster_timer_release(&zeroed, "s"), ENOENT);
    EXPECT_ERROR(muster_timer_release(&fixture->timer, NULL), EINVAL);
    EXPECT_ERROR(muster_timer_acquire_for(&fixture->timer, 0, "s", 1), EINVAL);
    EXPECT_ERROR(muster_timer_release_for(&fixture->timer, -1, "s"), EINVAL);
    assert_int_equal(muster_timer_scope_begin(NULL, "s", 1).error, EINVAL);
    int input = fcntl(STDIN_FILENO, F_GETFD);
    muster_timer_close(NULL);
    muster_timer_close(&zeroed); /* whose descriptor is 0 */
    assert_int_equal(fcntl(STDIN_FILENO, F_GETFD), input);
    muster_timer_scope_end(NULL);
    expect_silence(fixture);
}

FIXTURE_TEST(after_close_it_can_still_be_used) {
    muster_timer_close(&fixture->timer);
    muster_timer_close(&fixture->timer);
    assert_int_equal(muster_timer_acquire(&fixture->timer, "s", 1), 0);
    struct watchdog_request request = expect_request(fixture);
    watchdog_request_clear(&request);
}
