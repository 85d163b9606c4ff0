/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether a signal to the agent's process only says once more what an earlier one has said. Who
 * ends a job may send more than one within moments: Slurm signals a step and has its srun signal it
 * again, and systemd sends SIGHUP behind SIGTERM. One press of Ctrl-C comes twice where a wrapper
 * passes on what the whole group of the terminal gets. What else comes from a keyboard, or later,
 * is meant: the user does not want to wait any longer. */
#ifndef MUSTER_CORE_AGENT_SIGNAL_REPETITION_H
#define MUSTER_CORE_AGENT_SIGNAL_REPETITION_H

#include <stdbool.h>

#include "base/duration.h"

#define SIGNAL_REPETITION_SECONDS 5
/* Nobody presses twice within this time; a program that passes a signal on needs far less. */
#define SIGNAL_REPETITION_SAME_MILLISECONDS 300

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
