/* SPDX-License-Identifier: BSD-3-Clause */
/* How a process ended, as the kernel reports it to the parent. The host floor fills in these
 * values. */
#ifndef MUSTER_CORE_WORKERS_PROCESS_EXIT_H
#define MUSTER_CORE_WORKERS_PROCESS_EXIT_H

#include <stdbool.h>

struct process_exit {
    bool is_signal;       /* the process ended by a signal, else by exit() */
    int value;            /* the exit code (0-255), or the signal number */
    bool has_dumped_core; /* only set with is_signal */
};

/* The exit code by Python's convention, which error files and torchrun's reports use: a signal is a
 * negative code. */
static inline int process_exit_python_code(struct process_exit exit) {
    return exit.is_signal ? -exit.value : exit.value;
}

#endif
