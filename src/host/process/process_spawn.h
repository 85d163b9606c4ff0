/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts one worker process that is isolated from the agent: its own session, no signal blocked,
 * none ignored but those that are asked for, no descriptors but the three standard ones, and a
 * fourth where one is asked for. The kernel kills it when the agent dies. Everything that goes
 * wrong up to exec is reported as a failure with its reason, never as an exit code. process_watch
 * watches the process.
 *
 * Always call it from the same thread, which must live as long as the workers, because the kernel's
 * parent-death signal (PR_SET_PDEATHSIG) is bound to the thread that started the child. That thread
 * sleeps until the child has called exec (a fraction of a millisecond); other threads run on.
 * Descriptors 0, 1 and 2 must be open in the agent. */
#ifndef MUSTER_HOST_PROCESS_PROCESS_SPAWN_H
#define MUSTER_HOST_PROCESS_PROCESS_SPAWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/duration.h"
#include "base/failure.h"
#include "base/text.h"
#include "core/machine/cpu_plan.h"
#include "host/loop/files.h"

/* Explains why a process could not be started, in words that tell the user what to do: a script
 * without a first line, an interpreter that does not exist, a limit that was reached. Only
 * process_spawn uses it. */

/* The stage that a child reached. */
enum spawn_stage {
    SPAWN_STAGE_SESSION,
    SPAWN_STAGE_DEATH_SIGNAL,
    SPAWN_STAGE_DESCRIPTORS,
    SPAWN_STAGE_CPUS,
    SPAWN_STAGE_EXECUTE,
};

/* What a failing child reports to its parent. */
struct spawn_report {
    enum spawn_stage stage;
    int system_error;
};

/* Sets the failure that a child reported. `program` is what the user named, `candidates` are the
 * paths that were tried. Returns FAILURE_SYSTEM. */
enum failure_code spawn_failure_set(struct failure *failure, const struct spawn_report *report,
    const char *program, const struct text_list *candidates);

/* Sets the failure of pipe() or fork(), when there was no child yet. Returns FAILURE_SYSTEM. */
enum failure_code spawn_failure_set_early(struct failure *failure, int system_error);

/* A child that has not been waited for. */
struct process {
    pid_t pid;
    int pidfd; /* close-on-exec; -1 before Linux 5.3, or when no descriptor was left */
};

/* A function that a process runs in the place of a program: a copy of the agent, in which what the
 * agent has opened since it began is closed. */
struct process_function {
    /* Returns the exit status. `extra_fd` is the request's, or a copy. */
    int (*run)(void *context, int extra_fd);
    void *context;
    struct number_list kept; /* the descriptors that it inherits: process_function_keep */
};

/* Keeps what is open now but for these two, which may be -1. Loops of libuv can be used in such
 * processes. Clear `kept` when nothing more is started. */
__attribute__((warn_unused_result)) enum failure_code process_function_keep(
    struct process_function *function, int left_out, int another, struct failure *failure);

struct process_request {
    /* arguments.items[0] is the program. With a slash it is a path; without, it is looked up in the
     * PATH of `environment` ("/bin:/usr/bin" when there is no PATH), as execvp does. */
    const struct text_list *arguments;
    const struct text_list *environment; /* the whole environment, NAME=VALUE */
    int stdin_fd;                        /* becomes descriptor 0; -1: the agent's own */
    int stdout_fd;                       /* becomes descriptor 1; -1: the agent's own */
    int stderr_fd;                       /* becomes descriptor 2; -1: the agent's own */
    int extra_fd; /* becomes descriptor 3, or is handed to the function; -1: there is none */
    const struct cpu_set_bits *cpus; /* the CPUs it may run on; NULL: those of the agent */
    long descriptor_limit;           /* its soft limit of open files; -1: that of the agent */
    uint64_t ignored_signals;        /* a set, see signal_watch_ignored */
    uint64_t kin_limit;              /* see process_kin; 0: none */
    bool outlives_agent;             /* it notices by itself that the agent is gone */
    const struct process_function *function; /* what to run instead of the program, or NULL */
    int guardian_fd; /* guardian_descriptor(), on which the child announces itself; -1: no guardian
                      */
};

/* Fills in the agent's own streams, CPUs and limits, no fourth descriptor and no guardian. Both
 * lists stay the caller's. */
void process_request_init(struct process_request *request, const struct text_list *arguments,
    const struct text_list *environment);

/* Starts the process and returns once its program is running. Everything in the request stays the
 * caller's. The caller owns the child: it must wait for it and close `pidfd` (process_family_add
 * takes over both).
 *
 * FAILURE_INVALID without arguments, else FAILURE_SYSTEM; no process is left behind then. The
 * message is a sentence about the stage that failed: "cannot execute './train.sh': Permission
 * denied (…)", "cannot start a process: Resource temporarily unavailable (limit on processes, see
 * ulimit -u)". `failure->system_error` is the errno. */
__attribute__((warn_unused_result)) enum failure_code process_spawn(
    const struct process_request *request, struct process *out_process, struct failure *failure);

/* What a program says, which runs in a session of its own and has nothing to read. */
struct process_answer {
    struct text said; /* the end of it, about the ceiling or more */
    bool is_late;     /* it has been ended */
    int status;       /* as waitpid has it */
};

/* Waits until the program closes its standard output, or the patience is over, and ends what is
 * left of it: for a thread that may wait. `hears_errors`: its standard error counts, too. Fails as
 * process_spawn does. The caller clears `said`. */
__attribute__((warn_unused_result)) enum failure_code process_ask(const struct text_list *arguments,
    const struct text_list *environment, struct duration patience, size_t ceiling,
    bool hears_errors, struct process_answer *out_answer, struct failure *failure);

/* Starts several programs beside each other. A thread that starts one sleeps until the program
 * runs, so a node of many workers is started sooner by a few threads, where it has processors for
 * them. The calling thread is one of them; the others are the crew. The threads live until the crew
 * is freed, because the kernel kills a process when the thread that has started it ends
 * (process_spawn). */

struct spawn_crew;

/* One program to be started. Where the crew has threads the request must not have a function: a
 * copy of the agent is made by the thread that has the agent's loop. */
struct spawn_task {
    struct process_request request;
    enum failure_code code; /* the outcome, as process_spawn has it */
    struct process process;
    struct failure failure;
};

/* A crew that uses up to `processors` processors, the calling thread's included; one that may use
 * no other has no thread. Threads are started when they are needed first. Never NULL. */
struct spawn_crew *spawn_crew_new(int processors);
/* The processes that it has started are killed. Accepts NULL. */
void spawn_crew_free(struct spawn_crew *crew);

/* Starts them all, whatever becomes of the others, and returns when each has its outcome. */
void spawn_crew_start(struct spawn_crew *crew, struct spawn_task *tasks, size_t count);

#endif
