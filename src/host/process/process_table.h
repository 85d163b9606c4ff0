/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads about other processes from /proc: one process, its children, or all processes. Only
 * process_table_signal sends signals. A pid that was read here may belong to another process by the
 * time it is used; process_table_signal makes sure that it does not hit that one. */
#ifndef MUSTER_HOST_PROCESS_PROCESS_TABLE_H
#define MUSTER_HOST_PROCESS_PROCESS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "wire/failure/kernel_text.h"

/* The system calls for pidfds, which older C libraries do not wrap. They fail with ENOSYS on
 * kernels without pidfds. Header-only, because each is a single call. */

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

/* What a process says about itself in /proc: its environment and its command line. Both are the
 * process's own words, and may be whatever it likes. */

/* The most bytes of an environment that are read. The kernel's limit is a quarter of the stack's (2
 * MiB). */
#define PROCESS_WORDS_ENVIRONMENT_CEILING (4 << 20)

/* Reads /proc/<pid>/<file> up to `size` bytes; 0 when permission is missing or there is no such
 * file. `file` begins with a slash. */
size_t process_words_read(pid_t pid, const char *file, char *buffer, size_t size);

/* What stands behind `start` (NAME=… as far as it is to be the same) in the first of the NUL-ended
 * strings that begins with it: the rest of that string, which ends with a NUL or with the
 * environment. NULL: there is no such string. */
const char *process_words_variable(
    const char *start, const char *environment, size_t length, size_t *out_rest_length);

/* The same for the environment of a process; `out_rest` gets as much as fits, and a NUL. False:
 * there is no such variable, or it is not shown. */
bool process_words_find(pid_t pid, const char *start, char *out_rest, size_t size);

/* The command line in one line of printable characters, for people, cut where it is long. The name
 * of the program where there is none, "?" where that is not shown either. The caller frees it. */
char *process_words_command(pid_t pid);

/* The name of a process that was forked from the agent and stays without exec. */

/* The calling process is called `name` from now on (15 characters at most), also in its command
 * line: a tool that looks for the agent by its command line must not find, count or kill it. Where
 * the command line cannot be written, the name in the process table changes alone. */
void process_name_take(const char *name);

/* False when there is no such process (or no /proc). Async-signal-safe. */
bool process_table_read(pid_t pid, struct kernel_process_stat *out_stat);

/* A growable list of pids; zeroed is empty. */
struct process_ids {
    pid_t *items;
    size_t count;
    size_t capacity;
};
void process_ids_add(struct process_ids *ids, pid_t pid);
bool process_ids_have(const struct process_ids *ids, pid_t pid);
void process_ids_clear(struct process_ids *ids);

/* Appends the children of `pid`: those of all its threads. */
void process_table_children(pid_t pid, struct process_ids *out_children);

/* The same for kernels that do not list children (CONFIG_PROC_CHILDREN): searches all processes. */
void process_table_children_by_search(pid_t pid, struct process_ids *out_children);

/* Calls `visit` for every process until it returns false. Returns false when there is no /proc. */
bool process_table_each(bool (*visit)(void *context, pid_t pid), void *context);

/* Sends `signal` to the process that `known` describes, and never to another process that got its
 * pid. False when the process is gone, or when permission is missing. */
bool process_table_signal(const struct kernel_process_stat *known, int signal);

/* Whether /proc is mounted, and shows this process. */
bool process_table_is_there(void);

/* Appends the children of this process, where there is no /proc to list them: tries each number
 * that a child can have. That takes a system call for each process that was started on this machine
 * since this one, and up to a second when the numbers have begun anew meanwhile. */
void process_table_own_children(struct process_ids *out_children);

/* By what the descendants of workers are told from other processes that become children of this
 * one. The first process of a container adopts whatever loses its parent there, and a shell may
 * leave children to the program that it becomes, which lose children of their own.
 *
 * A process can leave its session and its parent behind, and clear its environment. It keeps its
 * limits: a child and a program have them from before. One of them, the number of file locks, is
 * not enforced by any kernel since 2.4.25. So workers get a random number there, by which their
 * descendants are known for sure. Where strangers cannot come, nothing is changed. */

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
