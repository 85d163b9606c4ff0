/* SPDX-License-Identifier: BSD-3-Clause */
#include "unit.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/loop/event_loop.h"

/* Aborts in a child, with that errno. Returns the status of the child, and what it wrote. */
static int abort_with(int error, char *out_words, size_t size) {
    int fds[2];
    int status;
    assert_int_equal(pipe(fds), 0);
    pid_t child = fork();
    if (child == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
        dup2(fds[1], STDERR_FILENO);
        signal(SIGABRT, SIG_DFL);
        abort_notice_install();
        errno = error;
        abort();
    }
    close(fds[1]);
    ssize_t length = 0;
    ssize_t count;
    while ((count = read(fds[0], out_words + length, size - 1 - (size_t)length)) > 0) {
        length += count;
    }
    out_words[length] = '\0';
    close(fds[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define IS_ERRNO_HIDDEN true
#endif
#endif
#ifndef IS_ERRNO_HIDDEN
#define IS_ERRNO_HIDDEN false
#endif

TEST(refusal_of_the_machine_is_a_line_and_a_status) {
    if (IS_ERRNO_HIDDEN) {
        SKIP_BECAUSE("ThreadSanitizer hides errno from signal handlers");
    }
    char words[1024];
    const int refusals[] = {ENOMEM, EMFILE, ENFILE, ENOSPC};
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        int status = abort_with(refusals[i], words, sizeof words);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 1);
        assert_memory_equal(words, "muster: error: cannot go on: ", 29);
        assert_int_equal(words[strlen(words) - 1], '\n');
    }
}

TEST(any_other_abort_stays_one) {
    char words[1024];
    int status = abort_with(0, words, sizeof words);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
    assert_string_equal(words, "");
}

TEST(lack_of_memory_is_told_to_a_socket) {
    if (IS_ERRNO_HIDDEN) {
        SKIP_BECAUSE("ThreadSanitizer hides errno from signal handlers");
    }
    char words[1024];
    const int refusals[] = {EMFILE, ENOMEM};
    for (size_t i = 0; i < 2; i++) {
        int ends[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
        abort_notice_tell(ends[0], "last words");
        (void)abort_with(refusals[i], words, sizeof words);
        abort_notice_tell(-1, NULL);
        close(ends[0]);
        ssize_t length = recv(ends[1], words, sizeof words, 0);
        assert_int_equal(length, refusals[i] == ENOMEM ? 10 : 0);
        close(ends[1]);
    }
}
