/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts one worker process, cleanly cut off from the agent: a session of its own, no signal
 * blocked or ignored, no descriptor but the three standard ones, killed by the kernel when the
 * agent dies. What cannot be done before or by exec comes back as a failure with its reason, never
 * as an exit code. Watching the process is process_watch's.
 *
 * Call it from one thread only, which must live as long as the workers: the kernel's parent-death
 * signal (PR_SET_PDEATHSIG) is bound to the thread that started the child. That thread sleeps until
 * the child has called exec (a fraction of a millisecond); other threads run on. Descriptors 0, 1
 * and 2 must be open in the agent. */
#ifndef MUSTER_HOST_PROCESS_SPAWN_H
#define MUSTER_HOST_PROCESS_SPAWN_H

#include <sys/types.h>

#include "base/failure.h"
#include "base/text.h"
#include "core/cpu_set.h"

/* A child that has not been waited for. */
struct process {
    pid_t pid;
    int pidfd; /* close-on-exec; -1 where the kernel has none (before Linux 5.3) or no descriptor
                  was left */
};

struct process_request {
    /* arguments.items[0] is the program: a path when it has a slash, else looked up in the PATH of
     * `environment` ("/bin:/usr/bin" when that has none), as execvp does with its own. */
    const struct text_list *arguments;
    const struct text_list *environment; /* the whole environment, NAME=VALUE */
    int stdout_fd;                       /* becomes descriptor 1; -1: the agent's own */
    int stderr_fd;                       /* becomes descriptor 2; -1: the agent's own */
    const struct cpu_set_bits *cpus;     /* the CPUs it may run on; NULL: the agent's */
    long descriptor_limit;               /* its soft limit of open files; -1: the agent's */
    int guardian_fd; /* guardian_descriptor(), which the child announces itself to; -1: none */
};

/* The agent's own streams, CPUs and limits, and no guardian; both lists stay the caller's. */
void process_request_init(struct process_request *request, const struct text_list *arguments,
    const struct text_list *environment);

/* Starts the process and returns once its program is running. Everything in the request stays the
 * caller's. The caller owns the child: it must be waited for, and `pidfd` closed
 * (process_family_add takes both over).
 *
 * FAILURE_INVALID without arguments, else FAILURE_SYSTEM; then no process is left behind. The
 * message is a sentence about the stage that failed: "cannot execute './train.sh': Permission
 * denied (…)", "cannot start a process: Resource temporarily unavailable (limit on processes, see
 * ulimit -u)"; `failure->system_error` is the errno. */
__attribute__((warn_unused_result)) enum failure_code process_spawn(
    const struct process_request *request, struct process *out_process, struct failure *failure);

#endif
