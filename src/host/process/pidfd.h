/* SPDX-License-Identifier: BSD-3-Clause */
/* The system calls for pidfds, which older C libraries do not wrap. They fail with ENOSYS on
 * kernels without pidfds. Header-only, because each is a single call. */
#ifndef MUSTER_HOST_PROCESS_PIDFD_H
#define MUSTER_HOST_PROCESS_PIDFD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif

/* Returns a descriptor (close-on-exec) for this process; it never means a later process with the
 * same pid. -1 and errno on failure. */
static inline int pidfd_open_process(pid_t pid) {
    return (int)syscall(SYS_pidfd_open, pid, 0);
}

static inline bool pidfd_signal(int pidfd, int signal) {
    return syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0) == 0;
}

#endif
