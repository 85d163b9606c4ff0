/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether a process is ending, and how. When the kernel ends a process it notes first how, and
 * takes its memory down then, which can take long. Only after that is anybody told, who can wait
 * for it. Until then /proc/PID/stat has what waitpid will say. */
#ifndef MUSTER_HOST_PROCESS_PROCESS_ENDING_H
#define MUSTER_HOST_PROCESS_PROCESS_ENDING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/workers/worker_group.h"

/* False when that process (the one with this start time, see kernel_text_read_stat) is not ending
 * or is gone, when it ends with success, when only its first thread ends, and when the kernel does
 * not show it. May wait for a short while, as long as the kernel needs to take a process down. */
bool process_ending_read(pid_t pid, uint64_t start_time, struct process_exit *out_exit);

#endif
