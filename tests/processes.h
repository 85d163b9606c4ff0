/* SPDX-License-Identifier: BSD-3-Clause */
/* What tests with real processes share: starting a shell, reading what it says, and proof that
 * nothing was left behind. Include after "unit.h". */
#ifndef MUSTER_TESTS_PROCESSES_H
#define MUSTER_TESTS_PROCESSES_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/loop/files.h"
#include "host/process/process_spawn.h"

extern char **environ;

/* NAME=VALUE as this process has them. */
static inline struct text_list processes_environment(void) {
    struct text_list list = {0};
    for (char **entry = environ; *entry != NULL; entry++) {
        text_list_add(&list, *entry);
    }
    return list;
}

/* Starts `sh -c script` with its standard output on `stdout_fd` (-1: the test's own). */
static inline struct process processes_start_shell(
    const char *script, int stdout_fd, int guardian_fd) {
    struct text_list arguments = {0};
    text_list_add(&arguments, "sh");
    text_list_add(&arguments, "-c");
    text_list_add(&arguments, script);
    struct text_list environment = processes_environment();
    struct process_request request;
    process_request_init(&request, &arguments, &environment);
    request.stdout_fd = stdout_fd;
    request.guardian_fd = guardian_fd;
    struct process process;
    struct failure failure;
    if (process_spawn(&request, &process, &failure) != FAILURE_NONE) {
        fail_msg("%s", failure.message);
    }
    text_list_clear(&arguments);
    text_list_clear(&environment);
    return process;
}

/* A pipe whose ends no program inherits by accident. */
static inline void processes_make_pipe(int ends[2]) {
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
}

/* Reads one line, without its newline; waits for it. */
static inline void processes_read_line(int fd, char *line, size_t size) {
    size_t length = 0;
    char byte;
    while (read(fd, &byte, 1) == 1 && byte != '\n') {
        assert_true(length + 1 < size);
        line[length++] = byte;
    }
    line[length] = '\0';
}

/* Waits until nobody holds the writing end any more; what is still said is dropped. */
static inline void processes_wait_for_silence(int fd) {
    char buffer[512];
    ssize_t length;
    do {
        length = read(fd, buffer, sizeof buffer);
    } while (length > 0 || (length == -1 && errno == EINTR));
    assert_int_equal(length, 0);
}

/* Waits for a process that is in no watch's care; its wait() status. */
static inline int processes_wait(const struct process *process) {
    int status = -1;
    assert_int_equal(waitpid(process->pid, &status, 0), process->pid);
    if (process->pidfd != -1) {
        close(process->pidfd);
    }
    return status;
}

static inline bool processes_count_one(void *context, int number) {
    (void)number;
    ++*(int *)context;
    return true;
}

/* Open descriptors of this process. */
static inline int processes_open_descriptors(void) {
    int count = 0;
    assert_true(number_directory_each("/proc/self/fd", processes_count_one, &count));
    return count;
}

/* No child, alive or zombie. */
static inline void processes_assert_no_children(void) {
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

#endif
