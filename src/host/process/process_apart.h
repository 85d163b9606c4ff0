/* SPDX-License-Identifier: BSD-3-Clause */
/* A copy of this program that runs apart from it, without exec: forked twice, so it is no child of
 * the program; in a session of its own; with the default of every signal that is not ignored for
 * good (signal_watch_ignored); and with no descriptor but the standard ones, one end of a socket to
 * the program, a pidfd of the program, and one of the program's that it asks for.
 *
 * It is forked twice also for libuv, which makes its own descriptors anew only when a process is
 * forked: between, all that the program has open is closed, and theirs with it. */
#ifndef MUSTER_HOST_PROCESS_PROCESS_APART_H
#define MUSTER_HOST_PROCESS_PROCESS_APART_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/failure.h"

struct process_apart {
    pid_t pid;
    int pidfd; /* -1 where the kernel has none */
    int fd;    /* the program's end of the socket, non-blocking */
};

struct process_apart_settings {
    int stdout_fd; /* -1: the program's own */
    int stderr_fd;
    /* Runs in the copy, which ends with the status that it returns. `program` is a pidfd, or -1. */
    int (*run)(void *context, int fd, int program);
    void *context;
    int kept_fd; /* stays open in the copy under its number; -1: none */
};

/* FAILURE_SYSTEM. The caller closes both descriptors of the result. */
__attribute__((warn_unused_result)) enum failure_code process_apart_start(
    const struct process_apart_settings *settings, struct process_apart *out_process,
    struct failure *failure);

/* A signal to that very process; false when it has ended. */
bool process_apart_signal(const struct process_apart *process, int signal);

#endif
