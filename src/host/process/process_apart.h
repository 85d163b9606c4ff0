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
#include "host/loop/event_loop.h"

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

/* A small child of the agent that only tells which signals reach it. It has a session of its own,
 * as workers have. So who signals every process below the agent signals the witness, too, and who
 * signals the agent alone, or its process group, does not. No signal but SIGKILL ends it; it ends
 * with the agent. It holds no descriptor of the agent's. */

/* In the place of a signal: it has answered signal_witness_ask. */
#define SIGNAL_WITNESS_ANSWER 0

struct signal_witness;

/* Starts the witness. `seen` is called on the loop, and by signal_witness_listen, for each signal;
 * one that comes again before it was told is told once. A process_family has to leave it out. */
__attribute__((warn_unused_result)) enum failure_code signal_witness_new(struct event_loop *loop,
    void (*seen)(void *context, int signal), void *context, struct signal_witness **out_witness,
    struct failure *failure);

/* Ends the witness, and waits for it. Accepts NULL. */
void signal_witness_free(struct signal_witness *witness);

/* Takes what the witness has told and the loop has not taken yet. False: it has ended, and tells
 * nothing any more. */
bool signal_witness_listen(struct signal_witness *witness);

/* Asks for an answer, which comes after all signals that reached the witness before the question.
 * False: it cannot be asked. */
bool signal_witness_ask(struct signal_witness *witness);

/* For tests. */
pid_t signal_witness_pid(const struct signal_witness *witness);

#endif
