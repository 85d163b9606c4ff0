/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <signal.h>
#include <sys/wait.h>

#include "agent/workers/agent_guardian.h"
#include "agent_fixture.h"
#include "workers_fixture.h"

/* Longer than a signal waits for the witness. */
#define LONG_ENOUGH_MILLISECONDS 600

/* One worker that ends by whatever it is sent. The witness has a loop of its own, because it comes
 * before the workers' family. */
struct fixture {
    struct event_loop *loop;
    struct signal_passing *passing;
    struct workers_fixture workers;
    bool is_time_over;
};

static const struct log silent = {.threshold = LOG_LEVEL_CRITICAL};

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){0};
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    fixture->passing = signal_passing_new(fixture->loop, &silent);
    assert_non_null(fixture->passing);
    workers_fixture_init(&fixture->workers, 1, "exec sleep 1000");
    workers_fixture_start(&fixture->workers);
}

static void send_to_workers(struct fixture *fixture, int signal) {
    signal_passing_send(
        fixture->passing, fixture->workers.workers, &fixture->workers.group, &silent, signal);
}

static void turn(struct fixture *fixture) {
    event_loop_run_ready(fixture->loop);
    event_loop_run_ready(fixture->workers.loop);
}

static int ended_by(struct fixture *fixture) {
    while (strchr(fixture->workers.story, 'g') == NULL) {
        turn(fixture);
    }
    assert_true(fixture->workers.last_exit.is_signal);
    return fixture->workers.last_exit.value;
}

static void time_is_over(void *context) {
    ((struct fixture *)context)->is_time_over = true;
}

/* Until whatever waits has been sent. */
static void pass_time(struct fixture *fixture) {
    struct event_timer *timer = event_timer_new(fixture->loop, time_is_over, fixture);
    event_timer_set(timer, instant_after(event_loop_now(fixture->loop),
                               duration_from_milliseconds(LONG_ENOUGH_MILLISECONDS)));
    fixture->is_time_over = false;
    while (!fixture->is_time_over) {
        turn(fixture);
    }
    event_timer_free(timer);
}

static void tear_down(struct fixture *fixture) {
    signal_passing_free(fixture->passing);
    workers_fixture_clear(&fixture->workers);
    assert_true(event_loop_free(fixture->loop));
}

static void signal_witness(struct fixture *fixture, int signal) {
    assert_int_equal(kill(signal_passing_witness(fixture->passing), signal), 0);
    while (!signal_passing_has_seen(fixture->passing, signal)) {
        turn(fixture);
    }
}

FIXTURE_TEST(what_the_agent_alone_got_is_sent) {
    signal_passing_note(fixture->passing, SIGTERM, false);
    send_to_workers(fixture, SIGTERM);
    assert_int_equal(ended_by(fixture), SIGTERM);
}

FIXTURE_TEST(what_the_witness_got_is_not_sent) {
    signal_passing_note(fixture->passing, SIGTERM, false);
    signal_witness(fixture, SIGTERM);
    send_to_workers(fixture, SIGTERM);
    pass_time(fixture);
    send_to_workers(fixture, SIGKILL); /* which is nobody's but ours */
    assert_int_equal(ended_by(fixture), SIGKILL);
}

/* As when workers were looked at first, before they were to be ended. */
FIXTURE_TEST(what_the_witness_got_long_ago_is_not_sent) {
    signal_witness(fixture, SIGTERM);
    signal_passing_note(fixture->passing, SIGTERM, false);
    pass_time(fixture);
    send_to_workers(fixture, SIGTERM);
    pass_time(fixture);
    send_to_workers(fixture, SIGKILL);
    assert_int_equal(ended_by(fixture), SIGKILL);
}

static void wait_until_stopped(struct fixture *fixture) {
    int status;
    pid_t witness = signal_passing_witness(fixture->passing);
    assert_int_equal(waitpid(witness, &status, WUNTRACED), witness);
    assert_true(WIFSTOPPED(status));
}

/* As when the machine lets it run late. */
FIXTURE_TEST(what_the_witness_tells_late_is_not_sent) {
    kill(signal_passing_witness(fixture->passing), SIGSTOP);
    wait_until_stopped(fixture);
    kill(signal_passing_witness(fixture->passing), SIGTERM);
    signal_passing_note(fixture->passing, SIGTERM, false);
    send_to_workers(fixture, SIGTERM);
    pass_time(fixture);
    signal_witness(fixture, SIGCONT);
    while (!signal_passing_has_seen(fixture->passing, SIGTERM)) {
        turn(fixture);
    }
    pass_time(fixture);
    send_to_workers(fixture, SIGKILL);
    assert_int_equal(ended_by(fixture), SIGKILL);
}

FIXTURE_TEST(a_witness_that_does_not_answer_is_not_waited_for) {
    kill(signal_passing_witness(fixture->passing), SIGSTOP);
    wait_until_stopped(fixture);
    signal_passing_note(fixture->passing, SIGTERM, false);
    send_to_workers(fixture, SIGTERM);
    assert_int_equal(ended_by(fixture), SIGTERM);
}

/* The answer to the question about the first signal is none about the second. */
FIXTURE_TEST(an_answer_is_about_the_signal_that_was_asked_for) {
    kill(signal_passing_witness(fixture->passing), SIGSTOP);
    wait_until_stopped(fixture);
    signal_passing_note(fixture->passing, SIGUSR1, false);
    send_to_workers(fixture, SIGUSR1);
    pass_time(fixture);
    signal_passing_note(fixture->passing, SIGTERM, true);
    send_to_workers(fixture, SIGTERM);
    kill(signal_passing_witness(fixture->passing), SIGCONT);
    while (!signal_passing_has_seen(fixture->passing, SIGCONT)) {
        turn(fixture);
    }
    signal_witness(fixture, SIGTERM);
    pass_time(fixture);
    send_to_workers(fixture, SIGKILL);
    assert_int_equal(ended_by(fixture), SIGKILL);
}

FIXTURE_TEST(another_signal_than_the_witness_got_is_sent) {
    signal_witness(fixture, SIGUSR1);
    signal_passing_note(fixture->passing, SIGTERM, false);
    send_to_workers(fixture, SIGTERM);
    assert_int_equal(ended_by(fixture), SIGTERM);
}

FIXTURE_TEST(what_came_to_nobody_from_outside_is_sent_at_once) {
    signal_witness(fixture, SIGTERM);
    send_to_workers(fixture, SIGTERM);
    assert_int_equal(ended_by(fixture), SIGTERM);
}

FIXTURE_TEST(workers_that_have_just_started_may_have_missed_it) {
    signal_passing_note_start(fixture->passing, true);
    signal_witness(fixture, SIGTERM);
    signal_passing_note(fixture->passing, SIGTERM, false);
    send_to_workers(fixture, SIGTERM);
    assert_int_equal(ended_by(fixture), SIGTERM);
}

FIXTURE_TEST(everything_is_sent_without_a_witness) {
    kill(signal_passing_witness(fixture->passing), SIGKILL);
    signal_passing_note(fixture->passing, SIGTERM, false);
    send_to_workers(fixture, SIGTERM);
    assert_int_equal(ended_by(fixture), SIGTERM);
    tear_down(fixture);
    set_up(fixture);
    signal_passing_free(fixture->passing);
    fixture->passing = NULL;
    signal_passing_note(fixture->passing, SIGTERM, false);
    send_to_workers(fixture, SIGTERM);
    assert_int_equal(ended_by(fixture), SIGTERM);
}
