/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/loop/event_loop.h"
#include "host/loop/files.h"
#include "host/process/process_apart.h"

struct story {
    int (*what)(int fd, int program);
};

static int run(void *context, int fd, int program) {
    const struct story *story = context;
    return story->what(fd, program);
}

static struct process_apart start(int (*what)(int fd, int program)) {
    struct story story = {what};
    const struct process_apart_settings settings = {-1, -1, run, &story, -1};
    struct process_apart process;
    assert_int_equal(process_apart_start(&settings, &process, NULL), FAILURE_NONE);
    return process;
}

static void end(const struct process_apart *process) {
    close(process->fd);
    if (process->pidfd >= 0) {
        close(process->pidfd);
    }
}

/* What the copy has said until its end. */
static void read_all(const struct process_apart *process, char *buffer, size_t size) {
    size_t length = 0;
    ssize_t read;
    while ((read = recv(process->fd, buffer + length, size - 1 - length, 0)) > 0) {
        length += (size_t)read;
    }
    assert_int_equal(read, 0);
    buffer[length] = '\0';
}

/* Tools that watch a process keep theirs from here on. */
#define TOOLS_DESCRIPTORS 512

static int highest_descriptor(void) {
    struct number_list open = number_directory_list("/proc/self/fd", "");
    int highest = 0;
    for (size_t i = 0; i < open.count; i++) {
        highest = open.items[i] < TOOLS_DESCRIPTORS ? open.items[i] : highest;
    }
    number_list_clear(&open);
    return highest;
}

static int tell_who_it_is(int fd, int program) {
    char line[128];
    struct sigaction action;
    (void)program;
    sigaction(SIGUSR1, NULL, &action);
    struct sigaction ignored;
    sigaction(SIGUSR2, NULL, &ignored);
    snprintf(line, sizeof line, "%d %d %d %d", getsid(0) == getpid(), action.sa_handler == SIG_DFL,
        ignored.sa_handler == SIG_IGN,
        highest_descriptor() <= 6); /* the listing has one of its own */
    return send(fd, line, strlen(line), 0) < 0;
}

static void ignore(int signal) {
    (void)signal;
}

TEST(copy_has_nothing_of_the_program_but_what_it_ignores) {
    char said[128];
    int kept[8];
    for (size_t i = 0; i < 8; i++) {
        kept[i] = dup(STDERR_FILENO);
    }
    signal(SIGUSR1, ignore);
    signal(SIGUSR2, SIG_IGN);
    struct process_apart process = start(tell_who_it_is);
    read_all(&process, said, sizeof said);
    assert_string_equal(said, "1 1 1 1");
    signal(SIGUSR1, SIG_DFL);
    signal(SIGUSR2, SIG_DFL);
    for (size_t i = 0; i < 8; i++) {
        close(kept[i]);
    }
    end(&process);
}

static int make_a_loop(int fd, int program) {
    struct event_loop *loop;
    bool works = event_loop_new(&loop, NULL) == FAILURE_NONE;
    struct event_wake *wake;
    (void)program;
    works = works && event_wake_new(loop, NULL, NULL, &wake, NULL) == FAILURE_NONE;
    if (works) {
        event_wake_free(wake);
        works = event_loop_free(loop);
    }
    return send(fd, works ? "y" : "n", 1, 0) < 0;
}

TEST(copy_may_use_event_loops_as_the_program_does) {
    char said[8];
    struct event_loop *loop;
    assert_int_equal(event_loop_new(&loop, NULL), FAILURE_NONE);
    struct process_apart process = start(make_a_loop);
    read_all(&process, said, sizeof said);
    assert_string_equal(said, "y");
    end(&process);
    assert_true(event_loop_free(loop));
}

static int wait_for_a_byte(int fd, int program) {
    char byte;
    (void)program;
    return recv(fd, &byte, 1, 0) != 1;
}

TEST(copy_is_no_child_and_can_be_signalled) {
    char said[8];
    struct process_apart process = start(wait_for_a_byte);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(kill(process.pid, 0), 0);
    assert_true(process_apart_signal(&process, SIGKILL));
    read_all(&process, said, sizeof said);
    end(&process);
}

/* Without pidfds (old kernels, valgrind) the end of the socket tells it. */
static int wait_for_the_program(int fd, int program) {
    struct pollfd death = {.fd = program >= 0 ? program : fd, .events = POLLIN};
    return poll(&death, 1, -1) != 1;
}

static int dropped;

static int look_at_kept(int fd, int program) {
    (void)program;
    bool is_kept = fcntl(fd - 1, F_GETFD) == FD_CLOEXEC;
    const char *answer = is_kept && fcntl(dropped, F_GETFD) < 0 ? "kept" : "not so";
    return write(fd, answer, strlen(answer)) > 0 ? 0 : 1;
}

TEST(copy_keeps_the_descriptor_that_it_is_to_keep_under_its_number) {
    char said[8];
    struct story story = {look_at_kept};
    dropped = fcntl(STDERR_FILENO, F_DUPFD, 20);
    int kept = fcntl(STDERR_FILENO, F_DUPFD, dropped + 1);
    assert_true(dropped >= 20 && kept > dropped);
    const struct process_apart_settings settings = {-1, -1, run, &story, kept};
    struct process_apart process;
    assert_int_equal(process_apart_start(&settings, &process, NULL), FAILURE_NONE);
    close(kept);
    close(dropped);
    read_all(&process, said, sizeof said);
    assert_string_equal(said, "kept");
    end(&process);
}

static int leave_one_behind(int fd, int program) {
    (void)start(wait_for_the_program);
    (void)fd;
    (void)program;
    return 0;
}

TEST(copy_sees_the_end_of_its_program) {
    char said[8];
    int ends[2];
    /* Both copies have the writing end as their standard error: the pipe ends with the last. */
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    struct story story = {leave_one_behind};
    const struct process_apart_settings settings = {ends[1], ends[1], run, &story, -1};
    struct process_apart process;
    assert_int_equal(process_apart_start(&settings, &process, NULL), FAILURE_NONE);
    close(ends[1]);
    read_all(&process, said, sizeof said);
    assert_int_equal(read(ends[0], said, sizeof said), 0);
    close(ends[0]);
    end(&process);
}
