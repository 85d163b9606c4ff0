/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <signal.h>

#include "host/process/process_apart.h"
#include "processes.h"

struct fixture {
    struct event_loop *loop;
    struct signal_witness *witness;
    int seen[8];
    size_t seen_count;
};

static void note(void *context, int signal) {
    struct fixture *fixture = context;
    assert_true(fixture->seen_count < sizeof fixture->seen / sizeof *fixture->seen);
    fixture->seen[fixture->seen_count++] = signal;
}

static void set_up(struct fixture *fixture) {
    *fixture = (struct fixture){0};
    assert_int_equal(event_loop_new(&fixture->loop, NULL), FAILURE_NONE);
    assert_int_equal(
        signal_witness_new(fixture->loop, note, fixture, &fixture->witness, NULL), FAILURE_NONE);
}

static void tear_down(struct fixture *fixture) {
    signal_witness_free(fixture->witness);
    assert_true(event_loop_free(fixture->loop));
    processes_assert_no_children();
}

static void wait_until_seen(struct fixture *fixture, size_t count) {
    while (fixture->seen_count < count) {
        event_loop_run_ready(fixture->loop);
    }
}

FIXTURE_TEST(signals_are_told_and_do_not_end_it) {
    static const int signals[] = {SIGTERM, SIGUSR1, SIGINT, SIGTERM};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        assert_int_equal(kill(signal_witness_pid(fixture->witness), signals[i]), 0);
        wait_until_seen(fixture, i + 1);
        assert_int_equal(fixture->seen[i], signals[i]);
    }
    assert_true(signal_witness_listen(fixture->witness));
}

/* What a terminal sends to the agent's group is told by nobody. The second signal comes after it.
 */
FIXTURE_TEST(signals_to_the_group_do_not_reach_it) {
    kill(signal_witness_pid(fixture->witness), SIGHUP);
    wait_until_seen(fixture, 1); /* it has its session by now */
    signal(SIGUSR2, SIG_IGN);
    assert_int_equal(kill(0, SIGUSR2), 0);
    kill(signal_witness_pid(fixture->witness), SIGTERM);
    wait_until_seen(fixture, 2);
    assert_int_equal(fixture->seen[1], SIGTERM);
    assert_int_equal(
        getsid(signal_witness_pid(fixture->witness)), signal_witness_pid(fixture->witness));
}

FIXTURE_TEST(nothing_of_the_agent_stays_open_in_it) {
    int count = 0;
    kill(signal_witness_pid(fixture->witness), SIGTERM);
    wait_until_seen(fixture, 1);
    char *path = text_format("/proc/%lld/fd", (long long)signal_witness_pid(fixture->witness));
    assert_true(number_directory_each(path, processes_count_one, &count));
    assert_int_equal(count, 2);
    free(path);
}

/* Also those that it had got and could not tell of. */
FIXTURE_TEST(an_answer_comes_after_what_it_had_got) {
    int status;
    pid_t pid = signal_witness_pid(fixture->witness);
    kill(pid, SIGSTOP);
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(signal_witness_ask(fixture->witness));
    kill(pid, SIGUSR1);
    kill(pid, SIGCONT);
    wait_until_seen(fixture, 3);
    assert_int_equal(fixture->seen[2], SIGNAL_WITNESS_ANSWER);
    assert_int_equal(fixture->seen[0] + fixture->seen[1], SIGUSR1 + SIGCONT);
}

FIXTURE_TEST(one_that_has_ended_tells_so) {
    kill(signal_witness_pid(fixture->witness), SIGKILL);
    while (signal_witness_listen(fixture->witness)) {
    }
    assert_false(signal_witness_ask(fixture->witness));
}

FIXTURE_TEST(one_that_is_stopped_holds_up_no_end) {
    int status;
    pid_t pid = signal_witness_pid(fixture->witness);
    kill(pid, SIGSTOP);
    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
}

TEST(nobody_can_be_freed) {
    signal_witness_free(NULL);
}

static int begin(void **state) {
    (void)state;
    (void)setpgid(0, 0); /* what is sent to the group is for this test alone */
    return 0;
}

TESTS_WITHIN(begin, NULL)
