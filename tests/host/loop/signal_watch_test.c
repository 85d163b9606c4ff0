/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "host/loop/event_loop.h"

struct fixture {
    struct event_loop *loop;
    int received[8];
    size_t count;
    size_t wanted; /* the loop stops after this many signals */
};

static void note_signal(void *context, int signal) {
    struct fixture *fixture = context;
    assert_true(fixture->count < 8);
    fixture->received[fixture->count++] = signal;
    if (fixture->count == fixture->wanted) {
        event_loop_stop(fixture->loop);
    }
}

static void set_up(struct fixture *fixture, size_t wanted) {
    *fixture = (struct fixture){.wanted = wanted};
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
}

static void signals_are_delivered_in_order(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture, 3);
    static const int signals[] = {SIGTERM, SIGINT, SIGHUP};
    struct signal_watch *watch;
    assert_int_equal(
        signal_watch_new(fixture.loop, signals, 3, note_signal, &fixture, &watch, NULL),
        FAILURE_NONE);
    raise(SIGHUP);
    raise(SIGTERM);
    raise(SIGINT);
    event_loop_run(fixture.loop);
    assert_int_equal(fixture.received[0], SIGHUP);
    assert_int_equal(fixture.received[1], SIGTERM);
    assert_int_equal(fixture.received[2], SIGINT);
    signal_watch_free(watch);
    assert_true(event_loop_free(fixture.loop));
}

static void signal_named_twice_is_delivered_once(void **state) {
    (void)state;
    struct fixture fixture;
    set_up(&fixture, 2);
    static const int signals[] = {SIGUSR1, SIGUSR1, SIGUSR2};
    struct signal_watch *watch;
    assert_int_equal(
        signal_watch_new(fixture.loop, signals, 3, note_signal, &fixture, &watch, NULL),
        FAILURE_NONE);
    raise(SIGUSR1);
    raise(SIGUSR2);
    event_loop_run(fixture.loop);
    assert_int_equal(fixture.received[0], SIGUSR1);
    assert_int_equal(fixture.received[1], SIGUSR2);
    signal_watch_free(watch);
    assert_true(event_loop_free(fixture.loop));
}

static void ignored_and_blocked_signal_is_handled_all_the_same(void **state) {
    (void)state;
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGHUP);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    struct fixture fixture;
    set_up(&fixture, 1);
    static const int signals[] = {SIGHUP};
    signal(SIGHUP, SIG_IGN); /* as under nohup */
    struct signal_watch *watch;
    assert_int_equal(
        signal_watch_new(fixture.loop, signals, 1, note_signal, &fixture, &watch, NULL),
        FAILURE_NONE);
    raise(SIGHUP);
    event_loop_run(fixture.loop);
    assert_int_equal(fixture.received[0], SIGHUP);
    signal_watch_free(watch);
    assert_true(event_loop_free(fixture.loop));
}

static void what_a_program_ignores_for_itself_is_not_ignored_for_good(void **state) {
    (void)state;
    uint64_t before = signal_watch_ignored();
    static const int own[] = {SIGPIPE, SIGXFSZ, SIGCHLD};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        signal(own[i], SIG_IGN);
    }
    assert_true(signal_watch_ignored() == before);
    signal(SIGHUP, SIG_IGN);
    signal(SIGRTMAX, SIG_IGN);
    assert_true(
        signal_watch_ignored() == (before | signal_watch_bit(SIGHUP) | signal_watch_bit(SIGRTMAX)));
    signal(SIGHUP, SIG_DFL);
    signal(SIGRTMAX, SIG_DFL);
    assert_true(signal_watch_ignored() == (before & ~signal_watch_bit(SIGHUP)));
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) {
        signal(own[i], SIG_DFL);
    }
}

static void signal_that_cannot_be_handled_is_refused(void **state) {
    (void)state;
    static const int impossible[] = {SIGKILL, SIGSTOP, 0, -1, 1000};
    for (size_t i = 0; i < sizeof impossible / sizeof *impossible; i++) {
        struct fixture fixture;
        set_up(&fixture, 1);
        const int signals[] = {SIGUSR1, impossible[i]};
        struct signal_watch *watch;
        struct failure failure;
        assert_int_equal(
            signal_watch_new(fixture.loop, signals, 2, note_signal, &fixture, &watch, &failure),
            FAILURE_INVALID);
        char expected[64];
        snprintf(expected, sizeof expected, "signal %d cannot be handled", impossible[i]);
        assert_string_equal(failure.message, expected);
        assert_true(event_loop_free(fixture.loop));
        struct sigaction now;
        assert_int_equal(sigaction(SIGUSR1, NULL, &now), 0);
        assert_ptr_equal(
            now.sa_handler, SIG_DFL); /* the valid signal of the list is not handled either */
    }
}

static void broken_pipe_becomes_an_error(void **state) {
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    close(ends[0]);
    signal_watch_ignore_write_signals();
    assert_int_equal(write(ends[1], "x", 1), -1);
    assert_int_equal(errno, EPIPE);
    close(ends[1]);
    signal(SIGPIPE, SIG_DFL);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(signals_are_delivered_in_order),
    cmocka_unit_test(signal_named_twice_is_delivered_once),
    cmocka_unit_test(ignored_and_blocked_signal_is_handled_all_the_same),
    cmocka_unit_test(what_a_program_ignores_for_itself_is_not_ignored_for_good),
    cmocka_unit_test(signal_that_cannot_be_handled_is_refused),
    cmocka_unit_test(broken_pipe_becomes_an_error),
};

UNIT_TESTS(tests)
