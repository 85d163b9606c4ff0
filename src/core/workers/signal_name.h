/* SPDX-License-Identifier: BSD-3-Clause */
/* Names and numbers of Linux signals, for the floors of strict C17, whose <signal.h> has only six
 * signals. The numbers are the generic ones (x86, ARM, RISC-V, POWER, s390). Real-time signals
 * begin at 34, because glibc uses the two before itself. The host floor sends and handles signals.
 */
#ifndef MUSTER_CORE_WORKERS_SIGNAL_NAME_H
#define MUSTER_CORE_WORKERS_SIGNAL_NAME_H

#include <stdbool.h>

#include "base/duration.h"

#define SIGNAL_NUMBER_KILL 9
#define SIGNAL_NUMBER_CHILD 17
#define SIGNAL_NUMBER_STOP 19
#define SIGNAL_NUMBER_REAL_TIME_FIRST 34
#define SIGNAL_NUMBER_REAL_TIME_LAST 64

/* The name of a signal: "SIGTERM" for 15, "SIGRTMIN+1" for 35, "SIGRTMAX" for 64. NULL when no
 * signal has this number. The string is static. */
const char *signal_name_from_number(int number);

/* Whether an agent can handle this signal, and so can be told to end by it: the signal has a name,
 * and is not SIGKILL, SIGSTOP or SIGCHLD. */
bool signal_may_be_handled(int number);

/* The number of a signal: 15 for "SIGTERM". It also knows the aliases SIGIOT, SIGCLD and SIGPOLL,
 * and SIGRTMIN+n and SIGRTMAX-n. The name must be exact: in upper case, with "SIG". 0 when there is
 * no such signal. */
int signal_number_from_name(const char *name);

/* Whether a signal to the agent's process only says once more what an earlier one has said. Who
 * ends a job may send more than one within moments: Slurm signals a step and has its srun signal it
 * again, and systemd sends SIGHUP behind SIGTERM. One press of Ctrl-C comes twice where a wrapper
 * passes on what the whole group of the terminal gets. What else comes from a keyboard, or later,
 * is meant: the user does not want to wait any longer. */

#define SIGNAL_REPETITION_SECONDS 5

/* A zeroed struct is valid. */
struct signal_repetition {
    int first; /* signal; 0: none has come */
    struct instant first_at;
    int meant; /* the last signal that was no repetition */
    struct instant meant_at;
};

/* A signal has come. Returns whether it is a repetition. */
bool signal_repetition_take(struct signal_repetition *repetition, int signal, struct instant now);

/* SIGINT or SIGQUIT. */
bool signal_repetition_is_from_keyboard(int signal);

#endif
