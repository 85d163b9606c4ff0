/* SPDX-License-Identifier: BSD-3-Clause */
/* How a process ended, as the kernel tells its parent. Plain values: the host floor fills them in.
 */
#ifndef MUSTER_CORE_PROCESS_EXIT_H
#define MUSTER_CORE_PROCESS_EXIT_H

#include <stdbool.h>

struct process_exit {
    bool is_signal;       /* ended by a signal, else by exit() */
    int value;            /* the exit code (0-255), or the signal number */
    bool has_dumped_core; /* only with is_signal */
};

/* Python's convention, which error files and torchrun's reports use: a signal is a negative code.
 */
static inline int process_exit_python_code(struct process_exit exit) {
    return exit.is_signal ? -exit.value : exit.value;
}

#endif
