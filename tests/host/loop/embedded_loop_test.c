/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/loop/event_loop.h"

#define LONG_MILLISECONDS 60000

struct fixture {
    struct embedded_loop *embedded;
    struct event_timer *timer;
    struct event_descriptor *descriptor;
    int pipe[2];
    bool is_done;
};

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){0};
    assert_int_equal(embedded_loop_new(&fixture->embedded, NULL), FAILURE_NONE);
    assert_int_equal(pipe(fixture->pipe), 0);
}

static void tear_down(struct fixture *fixture) {
    event_timer_free(fixture->timer);
    event_descriptor_free(fixture->descriptor);
    embedded_loop_free(fixture->embedded);
    close(fixture->pipe[0]);
    close(fixture->pipe[1]);
}

/* What a program with a loop of its own does. */
static void poll_until_done(const struct fixture *fixture) {
    while (!fixture->is_done) {
        struct pollfd poll_fd = {.fd = embedded_loop_fd(fixture->embedded), .events = POLLIN};
        assert_int_equal(poll(&poll_fd, 1, LONG_MILLISECONDS), 1);
        embedded_loop_process(fixture->embedded);
    }
}

static void note(void *context) {
    struct fixture *fixture = context;
    fixture->is_done = true;
    event_loop_stop(embedded_loop_inside(fixture->embedded));
}

static void set_timer(struct fixture *fixture, int64_t milliseconds) {
    struct event_loop *loop = embedded_loop_inside(fixture->embedded);
    fixture->timer = event_timer_new(loop, note, fixture);
    event_timer_set(fixture->timer,
        instant_after(event_loop_now(loop), duration_from_milliseconds(milliseconds)));
    embedded_loop_note(fixture->embedded);
}

FIXTURE_TEST(timer_makes_the_descriptor_readable) {
    set_timer(fixture, 20);
    poll_until_done(fixture);
}

/* A descriptor that a callback adds is known to the kernel only after one more turn. */
static void add_descriptor(void *context) {
    struct fixture *fixture = context;
    if (fixture->descriptor != NULL) {
        return;
    }
    assert_int_equal(event_descriptor_new(embedded_loop_inside(fixture->embedded), fixture->pipe[0],
                         note, fixture, &fixture->descriptor, NULL),
        FAILURE_NONE);
}

FIXTURE_TEST(descriptor_that_a_callback_adds_is_watched) {
    int first[2];
    struct event_descriptor *adding;
    assert_int_equal(pipe(first), 0);
    assert_int_equal(event_descriptor_new(embedded_loop_inside(fixture->embedded), first[0],
                         add_descriptor, fixture, &adding, NULL),
        FAILURE_NONE);
    embedded_loop_note(fixture->embedded);
    assert_int_equal(write(first[1], "x", 1), 1);
    while (fixture->descriptor == NULL) {
        embedded_loop_process(fixture->embedded);
    }
    event_descriptor_free(adding);
    embedded_loop_process(fixture->embedded);
    assert_false(fixture->is_done);
    assert_int_equal(write(fixture->pipe[1], "x", 1), 1);
    poll_until_done(fixture);
    close(first[0]);
    close(first[1]);
}

/* As a request to a store: what a callback asks for is sent in the next turn. */
static void ask_for_a_turn(void *context) {
    struct fixture *fixture = context;
    char byte;
    assert_int_equal(read(fixture->pipe[0], &byte, 1), 1);
    set_timer(fixture, 0);
}

FIXTURE_TEST(what_a_callback_asks_for_is_done_before_the_program_goes_on) {
    assert_int_equal(event_descriptor_new(embedded_loop_inside(fixture->embedded), fixture->pipe[0],
                         ask_for_a_turn, fixture, &fixture->descriptor, NULL),
        FAILURE_NONE);
    embedded_loop_note(fixture->embedded);
    embedded_loop_process(fixture->embedded);
    assert_int_equal(write(fixture->pipe[1], "x", 1), 1);
    embedded_loop_process(fixture->embedded);
    assert_true(fixture->is_done);
}

FIXTURE_TEST(waiting_ends_when_it_is_done) {
    set_timer(fixture, 5);
    embedded_loop_run_until(fixture->embedded, &fixture->is_done);
    assert_true(fixture->is_done);
    assert_false(embedded_loop_is_running(fixture->embedded));
}

FIXTURE_TEST(idle_loop_wants_nothing) {
    embedded_loop_process(fixture->embedded);
    embedded_loop_process(fixture->embedded);
    struct pollfd poll_fd = {.fd = embedded_loop_fd(fixture->embedded), .events = POLLIN};
    assert_int_equal(poll(&poll_fd, 1, 0), 0);
}

/* Nobody reads the pipe any more. */
static void write_to_nobody(void *context) {
    struct fixture *fixture = context;
    close(fixture->pipe[0]);
    fixture->pipe[0] = -1;
    assert_int_equal(write(fixture->pipe[1], "x", 1), -1);
    note(fixture);
}

FIXTURE_TEST(broken_pipe_inside_does_not_end_the_program) {
    sigset_t pending;
    assert_true(signal(SIGPIPE, SIG_DFL) != SIG_ERR);
    fixture->timer =
        event_timer_new(embedded_loop_inside(fixture->embedded), write_to_nobody, fixture);
    event_timer_set(fixture->timer, event_loop_now(embedded_loop_inside(fixture->embedded)));
    embedded_loop_note(fixture->embedded);
    poll_until_done(fixture);
    assert_int_equal(sigpending(&pending), 0);
    assert_int_equal(sigismember(&pending, SIGPIPE), 0);
    fixture->pipe[0] = dup(fixture->pipe[1]);
}

FIXTURE_TEST(child_is_another_process) {
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        _exit(embedded_loop_is_of_this_process(fixture->embedded) ? 1 : 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(embedded_loop_is_of_this_process(fixture->embedded));
}
