/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/loop/abort_notice.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define EXIT_REFUSED 1

/* NULL: no refusal. Only constants, because a signal handler may not format. */
static const char *explain(int error) {
    switch (error) {
    case ENOMEM:
        return "no memory is left for the program, or none for its event loop (see ulimit -v, and "
               "the memory limit of the cgroup)";
    case EMFILE:
        return "too many open files: raise the limit of this process (ulimit -n)";
    case ENFILE:
        return "too many open files on this machine (fs.file-max)";
    case ENOSPC:
        return "the event loop can watch no further file: this user has reached "
               "fs.epoll.max_user_watches";
    default:
        return NULL;
    }
}

static struct sigaction earlier;
static const char *volatile words_to_tell; /* NULL: nobody is told */
static volatile int told_fd;

static void say(const char *words) {
    ssize_t written = write(STDERR_FILENO, words, strlen(words));
    (void)written;
}

static void give_notice(int signal) {
    const char *reason = explain(errno);
    bool is_memory = errno == ENOMEM;
    (void)signal;
    if (reason != NULL) {
        say("muster: error: cannot go on: ");
        say(reason);
        say("\n");
        if (words_to_tell != NULL && is_memory) {
            const char *words = words_to_tell;
            ssize_t sent = send(told_fd, words, strlen(words), MSG_DONTWAIT | MSG_NOSIGNAL);
            (void)sent;
        }
        _exit(EXIT_REFUSED);
    }
}

void abort_notice_install(void) {
    struct sigaction action = {.sa_handler = give_notice};
    sigemptyset(&action.sa_mask);
    sigaction(SIGABRT, &action, &earlier);
}

void abort_notice_remove(void) {
    sigaction(SIGABRT, &earlier, NULL);
}

void abort_notice_tell(int fd, const char *words) {
    told_fd = fd;
    words_to_tell = words;
}
