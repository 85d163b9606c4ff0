/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of bad input (bad_input.h) of muster/timer.h, which is libmuster-timer's. */
#include "unit.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include <muster/timer.h>

#include "library/bad_input.h"

static char directory[32];
static char path[64];
static char odd_path[64];
static int reader;
static struct muster_timer timer;
static size_t descriptors;

/* A FIFO that is read: each request can be looked at. */
static void begin(void) {
    strcpy(directory, "/tmp/muster-timer-XXXXXX");
    assert_non_null(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/timers", directory);
    snprintf(odd_path, sizeof odd_path, "%s/" NO_UTF8, directory);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(symlink(path, odd_path), 0);
    reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(reader >= 0);
    descriptors = process_descriptors();
    assert_int_equal(muster_timer_open(&timer, path), 0);
    timer.patience = 0.2;
}

static void end(void) {
    muster_timer_close(&timer);
    assert_int_equal(process_descriptors(), descriptors);
    close(reader);
    assert_int_equal(unlink(odd_path), 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(directory), 0);
}

/* Whether a request with these words has come, and no other. "": none has. */
static bool has_come(const char *words) {
    char line[MUSTER_TIMER_LINE_SIZE + 1] = {0};
    ssize_t length = read(reader, line, MUSTER_TIMER_LINE_SIZE);
    if (*words == '\0') {
        return length <= 0;
    }
    return length > 0 && strstr(line, words) != NULL && strchr(line, '\n') == line + length - 1;
}

TEST(arguments_of_opening) {
    char *text = bad_input_text(MUSTER_TIMER_PATH_SIZE);
    struct muster_timer other;
    begin();
    assert_int_equal(unsetenv("TORCHELASTIC_TIMER_FILE"), 0);
    REFUSED_ERRNO(muster_timer_open, timer, IS_NULL, EINVAL, muster_timer_open(NULL, path) == -1);
    REFUSED_ERRNO(muster_timer_open, path, IS_NULL, ENOENT, muster_timer_open(&other, NULL) == -1);
    REFUSED_ERRNO(muster_timer_open, path, EMPTY, ENOENT, muster_timer_open(&other, "") == -1);
    REFUSED_ERRNO(
        muster_timer_open, path, TOO_LONG, ENAMETOOLONG, muster_timer_open(&other, text) == -1);
    ALLOWED(muster_timer_open, path, NOT_UTF8, "a path is any bytes",
        muster_timer_open(&other, odd_path) == 0);
    muster_timer_close(&other);
    other = (struct muster_timer){0}; /* it was never opened */
    REFUSED_ERRNO(
        muster_timer_keep_open, timer, NOT_OPENED, ENOENT, muster_timer_keep_open(&other) == -1);
    REFUSED_ERRNO(
        muster_timer_keep_open, timer, IS_NULL, EINVAL, muster_timer_keep_open(NULL) == -1);
    ALLOWED(muster_timer_close, timer, IS_NULL, "there is nothing to close",
        (muster_timer_close(NULL), muster_timer_close(&other), true));
    assert_true(has_come(""));
    free(text);
    end();
}

TEST(arguments_of_requests) {
    char *text = bad_input_text(MUSTER_TIMER_LINE_SIZE);
    struct muster_timer unopened = {0};
    begin();
    REFUSED_ERRNO(
        muster_timer_acquire, timer, IS_NULL, EINVAL, muster_timer_acquire(NULL, "s", 60) == -1);
    REFUSED_ERRNO(muster_timer_acquire, timer, NOT_OPENED, ENOENT,
        muster_timer_acquire(&unopened, "s", 60) == -1);
    REFUSED_ERRNO(
        muster_timer_acquire, scope, IS_NULL, EINVAL, muster_timer_acquire(&timer, NULL, 60) == -1);
    REFUSED_ERRNO(muster_timer_acquire, scope, TOO_LONG, EMSGSIZE,
        muster_timer_acquire(&timer, text, 60) == -1);
    ALLOWED(muster_timer_acquire, scope, EMPTY, "FileTimerClient's may be empty",
        muster_timer_acquire(&timer, "", 60) == 0 && has_come("\"scope_id\": \"\""));
    ALLOWED(muster_timer_acquire, scope, NOT_UTF8, "what is no UTF-8 is U+FFFD",
        muster_timer_acquire(&timer, NO_UTF8, 60) == 0 && has_come("\\ufffd"));
    REFUSED_ERRNO(
        muster_timer_acquire, seconds, BELOW, EINVAL, muster_timer_acquire(&timer, "s", -1) == -1);
    REFUSED_ERRNO(muster_timer_acquire, seconds, BELOW, EINVAL,
        muster_timer_acquire(&timer, "s", -INFINITY) == -1);
    REFUSED_ERRNO(muster_timer_acquire, seconds, ABOVE, EINVAL,
        muster_timer_acquire(&timer, "s", 1e10) == -1);
    REFUSED_ERRNO(muster_timer_acquire, seconds, ABOVE, EINVAL,
        muster_timer_acquire(&timer, "s", INFINITY) == -1);
    REFUSED_ERRNO(muster_timer_acquire, seconds, NOT_A_NUMBER, EINVAL,
        muster_timer_acquire(&timer, "s", (double)NAN) == -1);
    REFUSED_ERRNO(
        muster_timer_release, timer, IS_NULL, EINVAL, muster_timer_release(NULL, "s") == -1);
    REFUSED_ERRNO(muster_timer_release, timer, NOT_OPENED, ENOENT,
        muster_timer_release(&unopened, "s") == -1);
    REFUSED_ERRNO(
        muster_timer_release, scope, IS_NULL, EINVAL, muster_timer_release(&timer, NULL) == -1);
    REFUSED_ERRNO(
        muster_timer_release, scope, TOO_LONG, EMSGSIZE, muster_timer_release(&timer, text) == -1);
    ALLOWED(muster_timer_release, scope, EMPTY, "FileTimerClient's may be empty",
        muster_timer_release(&timer, "") == 0 && has_come("\"scope_id\": \"\""));
    ALLOWED(muster_timer_release, scope, NOT_UTF8, "what is no UTF-8 is U+FFFD",
        muster_timer_release(&timer, NO_UTF8) == 0 && has_come("\\ufffd"));
    assert_true(has_come(""));
    free(text);
    end();
}

TEST(arguments_of_requests_for_others) {
    char *text = bad_input_text(MUSTER_TIMER_LINE_SIZE);
    struct muster_timer unopened = {0};
    begin();
    REFUSED_ERRNO(muster_timer_acquire_for, timer, IS_NULL, EINVAL,
        muster_timer_acquire_for(NULL, 1, "s", 60) == -1);
    REFUSED_ERRNO(muster_timer_acquire_for, timer, NOT_OPENED, ENOENT,
        muster_timer_acquire_for(&unopened, 1, "s", 60) == -1);
    REFUSED_ERRNO(muster_timer_acquire_for, scope, IS_NULL, EINVAL,
        muster_timer_acquire_for(&timer, 1, NULL, 60) == -1);
    REFUSED_ERRNO(muster_timer_acquire_for, scope, TOO_LONG, EMSGSIZE,
        muster_timer_acquire_for(&timer, 1, text, 60) == -1);
    ALLOWED(muster_timer_acquire_for, scope, EMPTY, "FileTimerClient's may be empty",
        muster_timer_acquire_for(&timer, 1, "", 60) == 0 && has_come("\"scope_id\": \"\""));
    ALLOWED(muster_timer_acquire_for, scope, NOT_UTF8, "what is no UTF-8 is U+FFFD",
        muster_timer_acquire_for(&timer, 1, NO_UTF8, 60) == 0 && has_come("\\ufffd"));
    REFUSED_ERRNO(muster_timer_acquire_for, seconds, BELOW, EINVAL,
        muster_timer_acquire_for(&timer, 1, "s", -1) == -1);
    REFUSED_ERRNO(muster_timer_acquire_for, seconds, BELOW, EINVAL,
        muster_timer_acquire_for(&timer, 1, "s", -INFINITY) == -1);
    REFUSED_ERRNO(muster_timer_acquire_for, seconds, ABOVE, EINVAL,
        muster_timer_acquire_for(&timer, 1, "s", 1e10) == -1);
    REFUSED_ERRNO(muster_timer_acquire_for, seconds, ABOVE, EINVAL,
        muster_timer_acquire_for(&timer, 1, "s", INFINITY) == -1);
    REFUSED_ERRNO(muster_timer_acquire_for, seconds, NOT_A_NUMBER, EINVAL,
        muster_timer_acquire_for(&timer, 1, "s", (double)NAN) == -1);
    REFUSED_ERRNO(muster_timer_release_for, timer, IS_NULL, EINVAL,
        muster_timer_release_for(NULL, 1, "s") == -1);
    REFUSED_ERRNO(muster_timer_release_for, timer, NOT_OPENED, ENOENT,
        muster_timer_release_for(&unopened, 1, "s") == -1);
    REFUSED_ERRNO(muster_timer_release_for, scope, IS_NULL, EINVAL,
        muster_timer_release_for(&timer, 1, NULL) == -1);
    REFUSED_ERRNO(muster_timer_release_for, scope, TOO_LONG, EMSGSIZE,
        muster_timer_release_for(&timer, 1, text) == -1);
    ALLOWED(muster_timer_release_for, scope, EMPTY, "FileTimerClient's may be empty",
        muster_timer_release_for(&timer, 1, "") == 0 && has_come("\"scope_id\": \"\""));
    ALLOWED(muster_timer_release_for, scope, NOT_UTF8, "what is no UTF-8 is U+FFFD",
        muster_timer_release_for(&timer, 1, NO_UTF8) == 0 && has_come("\\ufffd"));
    assert_true(has_come(""));
    free(text);
    end();
}

TEST(arguments_of_scopes) {
    char *text = bad_input_text(MUSTER_TIMER_LINE_SIZE);
    struct muster_timer unopened = {0};
    begin();
    ALLOWED(muster_timer_scope_begin, timer, IS_NULL, "the error is in the scope",
        muster_timer_scope_begin(NULL, "s", 60).error == EINVAL);
    ALLOWED(muster_timer_scope_begin, timer, NOT_OPENED, "the error is in the scope",
        muster_timer_scope_begin(&unopened, "s", 60).error == ENOENT);
    ALLOWED(muster_timer_scope_begin, scope, IS_NULL, "the error is in the scope",
        muster_timer_scope_begin(&timer, NULL, 60).error == EINVAL);
    ALLOWED(muster_timer_scope_begin, scope, TOO_LONG, "the error is in the scope",
        muster_timer_scope_begin(&timer, text, 60).error == EMSGSIZE);
    ALLOWED(muster_timer_scope_begin, scope, EMPTY, "FileTimerClient's may be empty",
        muster_timer_scope_begin(&timer, "", 60).error == 0 && has_come("\"scope_id\": \"\""));
    ALLOWED(muster_timer_scope_begin, scope, NOT_UTF8, "what is no UTF-8 is U+FFFD",
        muster_timer_scope_begin(&timer, NO_UTF8, 60).error == 0 && has_come("\\ufffd"));
    ALLOWED(muster_timer_scope_begin, seconds, BELOW, "the error is in the scope",
        muster_timer_scope_begin(&timer, "s", -1).error == EINVAL);
    ALLOWED(muster_timer_scope_begin, seconds, BELOW, "the error is in the scope",
        muster_timer_scope_begin(&timer, "s", -INFINITY).error == EINVAL);
    ALLOWED(muster_timer_scope_begin, seconds, ABOVE, "the error is in the scope",
        muster_timer_scope_begin(&timer, "s", 1e10).error == EINVAL);
    ALLOWED(muster_timer_scope_begin, seconds, ABOVE, "the error is in the scope",
        muster_timer_scope_begin(&timer, "s", INFINITY).error == EINVAL);
    ALLOWED(muster_timer_scope_begin, seconds, NOT_A_NUMBER, "the error is in the scope",
        muster_timer_scope_begin(&timer, "s", (double)NAN).error == EINVAL);
    assert_true(has_come(""));
    ALLOWED(muster_timer_scope_end, scope, IS_NULL, "there is nothing to release",
        (muster_timer_scope_end(NULL), has_come("")));
    free(text);
    end();
}

TEST(pids) {
    begin();
    REFUSED_ERRNO(muster_timer_acquire_for, pid, BELOW, EINVAL,
        muster_timer_acquire_for(&timer, 0, "s", 60) == -1);
    REFUSED_ERRNO(muster_timer_acquire_for, pid, BELOW, EINVAL,
        muster_timer_acquire_for(&timer, LONG_MIN, "s", 60) == -1);
    REFUSED_ERRNO(muster_timer_release_for, pid, BELOW, EINVAL,
        muster_timer_release_for(&timer, -1, "s") == -1);
    assert_true(has_come(""));
    ALLOWED(muster_timer_acquire_for, pid, ABOVE, "the server looks for it",
        muster_timer_acquire_for(&timer, LONG_MAX, "s", 60) == 0 && has_come("\"s\""));
    ALLOWED(muster_timer_release_for, pid, ABOVE, "the server looks for it",
        muster_timer_release_for(&timer, LONG_MAX, "s") == 0 && has_come("\"s\""));
    end();
}

/* What a program may set of the struct. */
TEST(members) {
    begin();
    timer.signal = -5;
    ALLOWED(muster_timer, signal, BELOW, "the server refuses it",
        muster_timer_acquire(&timer, "s", 60) == 0 && has_come("\"signal\": -5}"));
    timer.signal = INT_MAX;
    ALLOWED(muster_timer, signal, ABOVE, "the server refuses it",
        muster_timer_acquire(&timer, "s", 60) == 0 && has_come("\"signal\": 2147483647}"));
    timer.signal = SIGKILL;
    ALLOWED(muster_timer, patience, BELOW, "nothing is waited for",
        (timer.patience = -INFINITY, muster_timer_acquire(&timer, "s", 60)) == 0 &&
            has_come("\"s\""));
    ALLOWED(muster_timer, patience, ABOVE, "about 30 years are waited",
        (timer.patience = INFINITY, muster_timer_acquire(&timer, "s", 60)) == 0 &&
            has_come("\"s\""));
    ALLOWED(muster_timer, patience, NOT_A_NUMBER, "nothing is waited for",
        (timer.patience = (double)NAN, muster_timer_acquire(&timer, "s", 60)) == 0 &&
            has_come("\"s\""));
    end();
}

/* The server has gone, and does not come back. */
TEST(after_its_server_has_gone) {
    begin();
    assert_int_equal(muster_timer_keep_open(&timer), 0);
    close(reader);
    errno = 0;
    assert_int_equal(muster_timer_acquire(&timer, "s", 60), -1);
    assert_int_equal(errno, ENXIO);
    assert_int_equal(muster_timer_release(&timer, "s"), -1);
    reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_int_equal(muster_timer_acquire(&timer, "s", 60), 0); /* it is usable again */
    muster_timer_close(&timer);
    assert_int_equal(muster_timer_release(&timer, "s"), 0); /* after it was closed, too */
    end();
}
