/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/loop/descriptors.h"

#define LOWEST 20
#define HIGHEST 24

/* Exit statuses of the children below. */
enum finding { AS_WANTED, TOO_MANY_MARKED, NOT_MARKED };

/* In a child, so that the test's own descriptors stay as they are. */
static int run_in_child(enum finding (*check)(void)) {
    pid_t pid = fork();
    if (pid == 0) {
        for (int fd = LOWEST; fd <= HIGHEST; fd++) {
            dup2(STDERR_FILENO, fd);
        }
        _exit((int)check());
    }
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static enum finding look_at_marks(int first) {
    for (int fd = LOWEST; fd <= HIGHEST; fd++) {
        bool is_marked = (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0;
        if (is_marked != (fd >= first)) {
            return is_marked ? TOO_MANY_MARKED : NOT_MARKED;
        }
    }
    return AS_WANTED;
}

static enum finding mark_at_once(void) {
    inherited_descriptors_end_at_exec(LOWEST + 2);
    return look_at_marks(LOWEST + 2);
}

static enum finding mark_one_by_one(void) {
    inherited_descriptors_end_at_exec_one_by_one(LOWEST + 2);
    return look_at_marks(LOWEST + 2);
}

static enum finding close_them(void) {
    inherited_descriptors_close(LOWEST + 2);
    for (int fd = LOWEST; fd <= HIGHEST; fd++) {
        bool is_open = fcntl(fd, F_GETFD) != -1;
        if (is_open != (fd < LOWEST + 2)) {
            return is_open ? NOT_MARKED : TOO_MANY_MARKED;
        }
    }
    return AS_WANTED;
}

TEST(descriptors_from_the_first_on_end_at_exec) {
    assert_int_equal(run_in_child(mark_at_once), AS_WANTED);
}

TEST(old_kernels_get_the_same) {
    assert_int_equal(run_in_child(mark_one_by_one), AS_WANTED);
}

TEST(descriptors_from_the_first_on_are_closed) {
    assert_int_equal(run_in_child(close_them), AS_WANTED);
}
