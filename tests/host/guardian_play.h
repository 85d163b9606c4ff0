/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes that act as agents with a guardian, and what is seen of them. */
#ifndef MUSTER_TESTS_HOST_GUARDIAN_PLAY_H
#define MUSTER_TESTS_HOST_GUARDIAN_PLAY_H

#include <poll.h>
#include <sched.h>
#include <sys/wait.h>

#include "host/process/guardian.h"
#include "host/process/process_table.h"
#include "processes.h"

/* A process that acts as an agent: it runs `play` and then waits to be killed. The pipe is its
 * standard output, and that of every process it starts. */
struct agent {
    pid_t pid;
    int output; /* ends when the agent, its guardian and its workers are all gone */
};

static inline struct agent start_agent(void (*play)(int output)) {
    int ends[2];
    processes_make_pipe(ends);
    struct agent agent = {.pid = fork(), .output = ends[0]};
    if (agent.pid == 0) {
        setpgid(0, 0);
        dup2(ends[1], STDOUT_FILENO);
        play(ends[1]);
        for (;;) {
            pause();
        }
    }
    close(ends[1]);
    return agent;
}

static inline void say_number(int output, int number) {
    char line[16];
    int length = snprintf(line, sizeof line, "%d\n", number);
    if (write(output, line, (size_t)length) != length) {
        _exit(1);
    }
}

static inline int read_number(const struct agent *agent) {
    char line[16];
    processes_read_line(agent->output, line, sizeof line);
    return atoi(line);
}

static inline void assert_nothing_is_left(struct agent *agent) {
    processes_wait_for_silence(agent->output);
    assert_int_equal(waitpid(agent->pid, NULL, 0), agent->pid);
    close(agent->output);
}

static inline struct guardian *start_guardian(const char *fingerprint) {
    struct text_list list = {0};
    if (fingerprint != NULL) {
        text_list_add(&list, fingerprint);
    }
    struct guardian *guardian;
    if (guardian_start(&list, false, &guardian, NULL) != FAILURE_NONE) {
        _exit(1);
    }
    text_list_clear(&list);
    return guardian;
}

/* Ends a process that is not our child, and has not ended before. */
static inline void end_living(pid_t pid) {
    struct kernel_process_stat stat;
    assert_true(process_table_read(pid, &stat));
    assert_int_not_equal(stat.state, 'Z');
    assert_int_equal(kill(pid, SIGKILL), 0);
}

/* Waits until a process that is not our child has ended. */
static inline void wait_for_stranger(pid_t pid) {
    int pidfd = pidfd_open_process(pid);
    if (pidfd != -1) {
        struct pollfd ended = {.fd = pidfd, .events = POLLIN};
        assert_int_equal(poll(&ended, 1, 10000), 1);
        close(pidfd);
        return;
    }
    struct kernel_process_stat stat; /* either the process is gone, or this kernel has no pidfds */
    while (process_table_read(pid, &stat) && stat.state != 'Z') {
        sched_yield();
    }
}

#endif
