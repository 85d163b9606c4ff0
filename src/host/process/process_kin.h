/* SPDX-License-Identifier: BSD-3-Clause */
/* By what the descendants of workers are told from other processes that become children of this
 * one. The first process of a container adopts whatever loses its parent there, and a shell may
 * leave children to the program that it becomes, which lose children of their own.
 *
 * A process can leave its session and its parent behind, and clear its environment. It keeps its
 * limits: a child and a program have them from before. One of them, the number of file locks, is
 * not enforced by any kernel since 2.4.25. So workers get a random number there, by which their
 * descendants are known for sure. Where strangers cannot come, nothing is changed. */
#ifndef MUSTER_HOST_PROCESS_PROCESS_KIN_H
#define MUSTER_HOST_PROCESS_PROCESS_KIN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Whether this process may get children that it has not started, nor a child of its own. Call it
 * before anything is started. */
bool process_kin_may_meet_strangers(void);

/* A limit that no other process on this machine has; 0 where a sandbox or a hard limit denies it.
 */
uint64_t process_kin_choose_limit(void);

/* Gives the calling process the limit; 0: it stays as it is. Async-signal-safe. */
void process_kin_take_limit(uint64_t limit);

enum process_kin_answer {
    PROCESS_KIN_UNKNOWN, /* it is not shown, or the limit is 0 */
    PROCESS_KIN_NO,
    PROCESS_KIN_YES,
};

/* Whether the process has the limit. */
enum process_kin_answer process_kin_has_limit(pid_t pid, uint64_t limit);

#endif
