/* SPDX-License-Identifier: BSD-3-Clause */
/* The guardian of an agent that stands still, and the connection that it holds. */
#include "unit.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "host/guardian_play.h"
#include "host/loop/event_loop.h"

struct fence_play {
    struct event_loop *loop;
    int word_count;
};

static void note_fence(void *context, struct duration silence) {
    struct fence_play *play = context;
    play->word_count += silence.nanoseconds >= duration_from_milliseconds(50).nanoseconds;
    event_loop_stop(play->loop);
}

/* Returns the other end of a connection that only the guardian holds. */
static int let_it_hold_a_connection(struct guardian *guardian) {
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    guardian_hold_connection(guardian, ends[0]);
    close(ends[0]);
    return ends[1];
}

static void expect_end_of_connection(int fd) {
    char byte;
    struct pollfd end = {.fd = fd, .events = POLLIN};
    assert_int_equal(poll(&end, 1, 10000), 1);
    assert_int_equal(read(fd, &byte, 1), 0);
    close(fd);
}

TEST(connection_ends_when_the_guardian_lets_go_or_fences) {
    struct guardian *guardian;
    assert_int_equal(guardian_start(NULL, true, &guardian, NULL), FAILURE_NONE);
    pid_t pid = guardian_pid(guardian);
    int first = let_it_hold_a_connection(guardian);
    int second = let_it_hold_a_connection(guardian); /* in place of the first */
    expect_end_of_connection(first);
    guardian_hold_connection(guardian, -1);
    expect_end_of_connection(second);
    int third = let_it_hold_a_connection(guardian);
    struct process worker =
        processes_start_shell("sleep 1000 & wait", -1, guardian_descriptor(guardian));
    guardian_speak(guardian, duration_from_milliseconds(50));
    expect_end_of_connection(third);
    assert_int_equal(WTERMSIG(processes_wait(&worker)), SIGKILL);
    expect_end_of_connection(let_it_hold_a_connection(guardian)); /* it has not heard of it */
    guardian_free(guardian);
    wait_for_stranger(pid);
    guardian_hold_connection(NULL, -1);
}

static void play_held_connection(int output) {
    int ends[2];
    struct guardian *guardian = start_guardian(NULL);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    guardian_hold_connection(guardian, ends[0]);
    say_number(output, ends[1]);
    say_number(output, guardian_pid(guardian));
}

/* The agent's end is inherited by nobody but the guardian. */
TEST(connection_of_a_killed_agent_ends) {
    struct agent agent = start_agent(play_held_connection);
    int fd = read_number(&agent);
    pid_t guardian = read_number(&agent);
    int pidfd = pidfd_open_process(agent.pid);
    int end = pidfd == -1 ? -1 : (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);
    assert_int_equal(kill(agent.pid, SIGKILL), 0);
    wait_for_stranger(guardian);
    if (end != -1) { /* else a seccomp profile does not let a test look */
        expect_end_of_connection(end);
    }
    close(pidfd);
    assert_nothing_is_left(&agent);
}

TEST(silent_agent_loses_its_workers_and_hears_of_it) {
    struct fence_play play = {0};
    const struct guardian_events events = {.fenced = note_fence, .context = &play};
    struct guardian *guardian;
    assert_int_equal(guardian_start(NULL, true, &guardian, NULL), FAILURE_NONE);
    assert_int_equal(event_loop_new(&play.loop, NULL), FAILURE_NONE);
    assert_int_equal(guardian_watch(guardian, play.loop, &events, NULL), FAILURE_NONE);
    struct process first =
        processes_start_shell("sleep 1000 & wait", -1, guardian_descriptor(guardian));
    guardian_speak(guardian, duration_from_milliseconds(50));
    assert_int_equal(WTERMSIG(processes_wait(&first)), SIGKILL);
    /* The agent has not heard of it, and starts another worker. */
    struct process second =
        processes_start_shell("sleep 1000 & wait", -1, guardian_descriptor(guardian));
    assert_int_equal(WTERMSIG(processes_wait(&second)), SIGKILL);
    guardian_end_session(guardian, first.pid);
    guardian_end_session(guardian, second.pid);
    guardian_listen(guardian); /* the word is there before the ends of the workers */
    assert_int_equal(play.word_count, 1);
    guardian_speak(guardian, (struct duration){0});
    struct process third = processes_start_shell("exit 3", -1, guardian_descriptor(guardian));
    assert_int_equal(WEXITSTATUS(processes_wait(&third)), 3);
    pid_t pid = guardian_pid(guardian);
    guardian_free(guardian);
    assert_true(event_loop_free(play.loop));
    wait_for_stranger(pid);
}
