/* SPDX-License-Identifier: BSD-3-Clause */
/* What the machine adds to what the user asked for, found out once before a job starts: how many
 * workers, which interpreter, which names, which CPUs. Opens nothing but the log directory, and
 * starts nothing that stays. */
#ifndef MUSTER_AGENT_WORKERS_AGENT_PREPARATION_H
#define MUSTER_AGENT_WORKERS_AGENT_PREPARATION_H

#include "base/failure.h"
#include "base/text.h"
#include "core/launch/launch_config.h"
#include "core/machine/cpu_plan.h"
#include "host/log/log_directory.h"

/* What a worker has in its environment where it has no error file: the value begins with
 * worker_mark, and its local rank follows. Otherwise its environment is what torchrun gives it. */
#define WORKER_MARK_VARIABLE "MUSTER_WORKER"

struct agent_preparation {
    int worker_count;
    bool is_word_unknown;   /* of --nproc-per-node, after a failure: nobody knows such a device */
    bool has_other_devices; /* a worker for each of them, which are no GPUs */
    char *python; /* absolute path, $PYTHON_EXEC as given, or NULL when no interpreter is needed */
    char *run_id; /* never NULL; a random UUID where none was given */
    char *worker_mark; /* that of the worker that has started this agent, if there is one, and this
                          agent's own */
    char *host_name;   /* how log files and prefixes call this machine */
    /* How everything else calls this node: as --local-addr, as other nodes know it, or as its
     * machine. */
    char *node_name;
    char *master_address; /* MASTER_ADDR */
    struct cpu_plan cpus; /* a set per local rank, or none */
    struct log_directory logs;
    struct text_list warnings; /* what was given and does not fit what is here */
    char *without_logs; /* why there is no directory, where nobody has asked for files; or NULL */
};

/* Who waits for disks that do not answer: their loop runs meanwhile, and ends the wait when it is
 * stopped. */
struct agent_preparation_watch {
    struct event_loop *loop;
    struct duration silence;                            /* after so long … */
    void (*is_silent)(void *context, const char *what); /* … they are told what is waited for */
    void *context;
};

/* FAILURE_INVALID with what to do about it, FAILURE_SYSTEM, or as blocking_task_run_within. The
 * caller clears the result. `environment` is what the workers inherit. `watch` may be NULL. */
__attribute__((warn_unused_result)) enum failure_code agent_prepare(
    const struct launch_config *config, const struct text_list *environment,
    const struct agent_preparation_watch *watch, struct agent_preparation *out_preparation,
    struct failure *failure);

/* What the variables of this agent's workers begin with, one of them in each: by that their
 * descendants are found, and nobody else's processes. Appends NAME=START. */
void agent_preparation_fingerprint(
    const struct agent_preparation *preparation, struct text_list *out_fingerprint);

void agent_preparation_clear(struct agent_preparation *preparation);

#endif
